// Sees nothing and says nothing: what tracing itself costs.
{
  fault: function () {},
  result: function () { return {}; },
}
