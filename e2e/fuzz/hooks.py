"""Each request to the admin API comes from an address of its own. Refused tokens slow their address down."""

import random

import schemathesis


@schemathesis.hook
def before_call(ctx, case, kwargs):
    address = ".".join(["10", *(str(random.randint(0, 255)) for _ in range(3))])
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address}
