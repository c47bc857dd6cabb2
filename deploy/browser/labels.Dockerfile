# Labels a browser image that has just been built: Chromium's version is known only then.
ARG IMAGE
FROM ${IMAGE}
