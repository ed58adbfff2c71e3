"""Views of the management API for customers."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.filters import address, read_filters, yes_or_no
from keys.api.forms import CustomerForm, NewCustomerForm
from keys.api.problems import Conflict
from keys.api.repeats import repeatable
from keys.api.serializers import CustomerDocument
from keys.api.views import ManagementView, Need
from keys.models import Scope, User
from keys.services import get_or_create_customer, switch_customer

_LOOK = Need(Scope.CUSTOMERS_READ, "keys.view_user")
_CHANGE = Need(Scope.CUSTOMERS_WRITE, "keys.change_user")


def customers() -> QuerySet[User]:
    """Return all customers, that is all users who are not staff."""
    return User.objects.filter(is_staff=False)


class CustomersView(ManagementView):
    """Lists and creates customers."""

    needs = {
        "GET": _LOOK,
        "POST": Need(Scope.CUSTOMERS_WRITE, "keys.add_user"),
    }
    filters = {
        "email": address("email", "Full email address."),
        "is_active": yes_or_no("is_active", "Whether the account is active."),
    }

    @extend_schema(responses=CustomerDocument(many=True))
    def get(self, request: Request) -> Response:
        """List customers, the newest first."""
        found = customers().filter(**read_filters(request, self.filters))
        return self.paged(found, CustomerDocument)

    @extend_schema(
        request=NewCustomerForm,
        responses={200: CustomerDocument, 201: CustomerDocument},
    )
    @repeatable
    def post(self, request: Request) -> Response:
        """Create a customer, or return the existing customer with this address (200).

        Customers set their password with the form for a forgotten password.
        """
        form = NewCustomerForm(data=request.data)
        form.is_valid(raise_exception=True)
        email = User.objects.normalize_email(form.validated_data["email"])
        with transaction.atomic():
            is_new = not User.objects.filter(email=email).exists()
            customer = get_or_create_customer(email=email)
            if customer.is_staff:
                raise Conflict("This email address belongs to a member of staff.")
        return Response(CustomerDocument(customer).data, 201 if is_new else 200)


class CustomerView(ManagementView):
    """Returns and changes one customer."""

    needs = {"GET": _LOOK, "PATCH": _CHANGE}

    @extend_schema(responses=CustomerDocument)
    def get(self, request: Request, customer: int) -> Response:
        """Return a customer."""
        found = get_object_or_404(customers(), pk=customer)
        return Response(CustomerDocument(found).data)

    @extend_schema(request=CustomerForm, responses=CustomerDocument)
    def patch(self, request: Request, customer: int) -> Response:
        """Activate or deactivate a customer's account.

        While it is deactivated, the customer can't log in and their keys are rejected.
        """
        found = get_object_or_404(customers(), pk=customer)
        form = CustomerForm(data=request.data)
        form.is_valid(raise_exception=True)
        changed = switch_customer(
            user=found, is_active=form.validated_data["is_active"], actor=self.actor()
        )
        return Response(CustomerDocument(changed).data)
