# amqpscope in a container, as a user without privileges:
#
#   docker build -t amqpscope .
#   docker run --rm -v "$PWD:/data:ro" amqpscope check traffic.pcap
#
# Watching an interface of the host takes the host's network and the capability NET_RAW:
#
#   docker run --rm -it --network host --cap-drop ALL --cap-add NET_RAW amqpscope sniff -i eth0 --top
#
# In the image only the interpreter that runs `sniff` has this capability. All other commands run with `--cap-drop ALL`.
FROM python:3.13-slim AS build
# Compiled where the build finds a compiler; AMQPSCOPE_COMPILE=no builds in seconds.
ARG AMQPSCOPE_COMPILE=require
RUN apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev
COPY . /source
RUN AMQPSCOPE_COMPILE=$AMQPSCOPE_COMPILE pip wheel --no-deps -w /wheels -c /source/constraints.txt /source

FROM python:3.13-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN apt-get update -q \
    && apt-get install -q -y --no-install-recommends libcap2-bin libpcap0.8 \
    && pip install --no-cache-dir -c /wheels/constraints.txt "$(echo /wheels/*.whl)[live,zstd]" \
    # A copy of the interpreter for `sniff` alone: the capability goes with whatever it runs.
    && cp "$(readlink -f /usr/local/bin/python3)" /usr/local/bin/python3-sniff \
    && setcap cap_net_raw+ep /usr/local/bin/python3-sniff \
    && apt-get purge -q -y libcap2-bin && apt-get autoremove -q -y && rm -rf /var/lib/apt/lists/* /wheels \
    && useradd --create-home amqpscope
COPY --chmod=755 .docker/amqpscope /usr/local/bin/amqpscope-container
USER amqpscope
WORKDIR /data
ENTRYPOINT ["/usr/local/bin/amqpscope-container"]
CMD ["--help"]
