#!/bin/sh
# Makes the certificates of the tests: sh make-certificates.sh
# An authority; certificates of a provider and of the relay that it signed, and an expired one; a self-signed one.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
touch "$work/index"
cat > "$work/ca.conf" <<CONF
[ca]
default_ca = test
[test]
database = $work/index
new_certs_dir = $work
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
CONF

sign() { # NAME SUBJECT END EXTENSIONS OPTIONS...
  name=$1 subject=$2 end=$3 extensions=$4
  shift 4
  openssl ecparam -name prime256v1 -genkey -noout -out "$name-key.pem"
  openssl req -new -key "$name-key.pem" -subj "/CN=$subject" -out "$work/request"
  printf '%s\n' "$extensions" > "$work/extensions"
  openssl ca -batch -notext -config "$work/ca.conf" -in "$work/request" -extfile "$work/extensions" \
    -startdate 20200101000000Z -enddate "$end" -out "$name.pem" "$@"
}
by_authority() { sign "$@" -cert ca.pem -keyfile ca-key.pem; }

sign ca "Test authority" 21200101000000Z "basicConstraints=critical,CA:true" -selfsign -keyfile ca-key.pem
by_authority provider provider.test 21200101000000Z "subjectAltName=DNS:provider.test,IP:127.0.0.1"
by_authority expired provider.test 20200102000000Z "subjectAltName=IP:127.0.0.1"
by_authority relay relay.test 21200101000000Z "extendedKeyUsage=clientAuth"
sign self-signed provider.test 21200101000000Z "subjectAltName=IP:127.0.0.1" -selfsign -keyfile self-signed-key.pem
rm ca-key.pem
chmod 644 ./*.pem
