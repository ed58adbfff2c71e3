"""Events: the changes of keys."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.filters import moment, one_of, read_filters, whole
from keys.api.serializers import EventDocument
from keys.api.views import ManagementView, Need
from keys.models import EventType, KeyEvent, Scope


class EventsView(ManagementView):
    """Lists the events of all keys."""

    needs = {"GET": Need(Scope.EVENTS_READ, "keys.view_keyevent")}
    filters = {
        "key": whole("api_key", "Id of a key."),
        "customer": whole("api_key__owner", "Id of a customer."),
        "type": one_of("type", list(EventType.values), "Type of the event."),
        "from": moment("at__gte", "Start of the time span."),
        "to": moment("at__lt", "End of the time span, exclusive."),
        "after": whole(
            "pk__gt", "Id of an event. Returns later events, the oldest first."
        ),
    }

    @extend_schema(responses=EventDocument(many=True))
    def get(self, request: Request) -> Response:
        """List events, the newest first.

        A program that follows the log requests the events `after` the last id that it
        has received, and receives each event exactly once. An event is withheld while
        a change that began earlier is still being written.
        """
        wanted = read_filters(request, self.filters)
        found = KeyEvent.objects.select_related("actor", "token").filter(**wanted)
        is_followed = "after" in request.query_params
        if is_followed:
            found = found.settled()
        ordering = "id" if is_followed else "-id"
        return self.paged(found, EventDocument, ordering=ordering)
