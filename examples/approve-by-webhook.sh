#!/bin/sh
# Approves a promotion that waits for it, with curl and openssl:
#   approve-by-webhook.sh NAMESPACE PIPELINE ENVIRONMENT REVISION
# SLUICE is where the controller answers, such as https://gates.example.com, and KEY_FILE the file with the
# key of the environment.
set -eu
revision=$(printf '%s' "$4" | sed 's,%,%25,g; s,/,%2F,g')
path="/approval/$1/$2/$3/$revision"
time=$(date +%s)
signature=$(printf '%s\nPOST\n%s\n' "$time" "$path" |
  openssl dgst -sha256 -hmac "$(cat "$KEY_FILE")" -r | cut -d ' ' -f 1)
curl --silent --show-error --fail-with-body --request POST \
  --header "X-Signature-Timestamp: $time" --header "X-Signature: sha256=$signature" "$SLUICE$path"
