#!/bin/sh
# Calls a Receiver of Flux of the type generic-hmac, with curl and openssl:
#   call-receiver.sh URL
# TOKEN is the token in the Secret of the Receiver.
set -eu
body='{}'
signature=$(printf '%s' "$body" | openssl dgst -sha256 -hmac "$TOKEN" -r | cut -d ' ' -f 1)
curl --silent --show-error --fail \
  --header "X-Signature: sha256=$signature" --data "$body" "$1"
