"""OpenAI's client for Python: a streamed chat completion with a tool. `python streamed.py "A question"`"""
import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=f"{os.environ['PROXY_URL']}/v1",
    api_key=os.environ["MODEL_KEY"],
    default_headers={"X-Service-API-Key": os.environ["RELAY_KEY"]},
)
# Of the end user who reads the answer: with each call, never with the client.
headers = {
    "X-Adrelay-Session-Id": "session-1",
    "X-Adrelay-User-Agent": "Mozilla/5.0",
    "X-Adrelay-User-IP": "203.0.113.7",
}
parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
question = sys.argv[1] if len(sys.argv) > 1 else "Which running shoes should I buy? Please use the tool."
messages = [{"role": "user", "content": question}]

while True:
    call = {"model": "gpt-5", "messages": messages, "tools": tools}
    with client.chat.completions.stream(**call, extra_headers=headers) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="", flush=True)
        message = stream.get_final_completion().choices[0].message
    if not message.tool_calls:
        break
    calls = [
        {"id": made.id, "type": "function", "function": {"name": made.function.name, "arguments": made.function.arguments}}
        for made in message.tool_calls
    ]
    messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    messages += [{"role": "tool", "tool_call_id": made["id"], "content": "It is sunny."} for made in calls]
