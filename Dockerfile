# The image of the operators, of profiling Jobs and of providers: Python, Holdfast, and nothing else.
#
#   docker build --tag holdfast:0.1 .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.com/holdfast:0.1 --push .
#
# PYTHON_IMAGE may be any image with the same Python; EXTRAS are installed too, for example "[libvirt]".
ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS build
ARG EXTRAS=""
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY examples examples
COPY src src
RUN python -m venv /opt/holdfast \
    && /opt/holdfast/bin/pip install --no-cache-dir --constraint constraints.txt ".${EXTRAS}" \
    && /opt/holdfast/bin/python -m compileall -q /opt/holdfast/lib \
    && /opt/holdfast/bin/pip uninstall --yes pip

FROM ${PYTHON_IMAGE}
# No pip and no set-user-id programs; the user is not root, and the root file system may be read-only.
RUN rm -rf /usr/local/lib/python3*/site-packages/pip* /usr/local/bin/pip* \
    && find / -xdev -perm /6000 -type f -exec chmod a-s {} +
COPY --from=build /opt/holdfast /opt/holdfast
ENV PATH=/opt/holdfast/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["holdfast"]
CMD ["operator", "run", "--leader-elect"]
