/**
 * Condition of a pod on the embedded platform, set when none of the ports that a container declares is listened on: its message names
 * the ports that are. `False` when that is over.
 */
export const LISTENING_PORTS_CONDITION = 'toolhive.stacklok.dev/ListeningPorts'
