# Removes a folder when the last process that uses it is gone.
#
# They all hold the other end of our standard input: the one who started us, and the supervisors of
# its servers as their standard output. Usage: sh -c SCRIPT NAME FOLDER
while read -r _; do :; done
rm -rf -- "$1"
