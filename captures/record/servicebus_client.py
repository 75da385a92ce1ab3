"""Azure Service Bus' own Python client against a plain server: token, messages there and back.

`batch`: one message, three in a batch, and each received and settled in another way. `delete`: six messages,
which the server settles when it sends them.

The platform it would tell the server is replaced, since that names the machine's kernel. Everything else is
the client's own.
"""

from __future__ import annotations

import argparse
import platform
import signal

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode

LIFETIME = 25  # s
KEY = "bWFkZS11cC1mb3ItY2FwdHVyZXM="


def name_without_kernel(aliased: bool = False, terse: bool = False) -> str:
    return "Linux"


def batch(client: ServiceBusClient) -> None:
    with client.get_queue_sender("parcels", client_identifier="parcels-out") as sender:
        sender.send_messages(ServiceBusMessage("alone", message_id="parcel-0", subject="single"))
        parcels = sender.create_message_batch()
        for number in (1, 2, 3):
            parcels.add_message(
                ServiceBusMessage(
                    f"parcel {number}",
                    message_id=f"parcel-{number}",
                    subject="batched",
                    application_properties={"number": number, "fragile": number == 2},
                )
            )
        sender.send_messages(parcels)
    with client.get_queue_receiver("parcels", client_identifier="parcels-in", max_wait_time=2) as receiver:
        received = []
        while len(received) < 4:
            received += receiver.receive_messages(max_message_count=4 - len(received), max_wait_time=2)
        receiver.complete_message(received[0])
        receiver.abandon_message(received[1])
        receiver.dead_letter_message(received[2], reason="unreadable", error_description="a test")
        receiver.complete_message(received[3])


def delete(client: ServiceBusClient) -> None:
    with client.get_queue_sender("parcels", client_identifier="parcels-out") as sender:
        for number in range(6):
            sender.send_messages(ServiceBusMessage(f"parcel {number}", message_id=f"parcel-{number}"))
    with client.get_queue_receiver(
        "parcels",
        client_identifier="parcels-in",
        receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE,
        prefetch_count=2,
    ) as receiver:
        received = 0
        while received < 6:
            received += len(receiver.receive_messages(max_message_count=2, max_wait_time=2))


SCENARIOS = {"batch": batch, "delete": delete}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", choices=sorted(SCENARIOS))
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    given = options.parse_args()
    signal.alarm(LIFETIME)
    platform.platform = name_without_kernel
    # With this last setting the client speaks plain AMQP on port 5672, as to Microsoft's emulator.
    where = (
        f"Endpoint=sb://{given.connect};SharedAccessKeyName=test;SharedAccessKey={KEY};"
        "UseDevelopmentEmulator=true"
    )
    with ServiceBusClient.from_connection_string(where, retry_total=0) as client:
        SCENARIOS[given.scenario](client)


if __name__ == "__main__":
    main()
