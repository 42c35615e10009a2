"""A switch with an endpoint at every port: `params` it takes, a `run`, its `measures` and `shares`, the `report`."""
