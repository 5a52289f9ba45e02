# Runs one server for as long as the other end of our standard input is held open.
#
# The one who started us holds that end and nobody else does. When it goes, in whatever way (dropped,
# panicked, interrupted, killed), we read the end of the file and kill the server. Usage:
# sh -c SCRIPT NAME LOG COMMAND... ; ends with the exit status of the command, whose process id is
# in LOG.pid.
log=$1
shift
"$@" </dev/null >>"$log" 2>&1 &
server=$!
echo "$server" >"$log.pid"
# A command in the background gets /dev/null as its standard input: hand it ours as 3. The server
# above was started before, so that it does not hold the pipe.
exec 3<&0
{
    while read -r _ <&3; do :; done
    kill -KILL "$server"
} 2>/dev/null &
watcher=$!
wait "$server"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
