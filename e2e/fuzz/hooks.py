"""What the fuzzer sends otherwise than it would by itself."""

import random

import schemathesis


WRAPPING_TYPES = ("xml", "plain", "markdown")


# Each request to the admin API comes from an address of its own. Refused tokens slow their address down.
@schemathesis.hook
def before_call(ctx, case, kwargs):
    address = ".".join(["10", *(str(random.randint(0, 255)) for _ in range(3))])
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address}


# The ad server reads null, blanks and upper case in wrapping_type. Its schema names only what callers should send.
@schemathesis.hook
def filter_case(ctx, case):
    body = case.body if isinstance(case.body, dict) else {}
    configuration = body.get("request_configuration")
    if not isinstance(configuration, dict) or "wrapping_type" not in configuration:
        return True
    value = configuration["wrapping_type"]
    read = value.strip().lower() if isinstance(value, str) else value
    return value in WRAPPING_TYPES or read not in (None, "", *WRAPPING_TYPES)
