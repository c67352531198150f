/* Reports of a runner on its MCPServer, as Events, which the operator shows in `Ready`. */

/** `reportingController` of the Events. */
export const RUNNER_CONTROLLER = 'toolhive.stacklok.dev/proxyrunner'

/** Reasons of the Events with type Warning. The newest one of a runner is the cause, unless an Event with type Normal is newer. */
export const RunnerReason = {
  /** Nothing accepts connections on the port of the MCP server. */
  BackendPortClosed: 'BackendPortClosed',
  /** Something answers, but not as an MCP server does. */
  BackendNotMcp: 'BackendNotMcp',
  /** The MCP server has not answered the handshake. */
  HandshakeTimedOut: 'HandshakeTimedOut',
  /** The program ended. */
  ServerEnded: 'ServerEnded',
  /** An object that the runner needs belongs to somebody else. */
  WorkloadForeign: 'WorkloadForeign',
  /** The API server keeps refusing an object that the runner writes. */
  WriteRefused: 'WriteRefused',
} as const

export type RunnerReason = (typeof RunnerReason)[keyof typeof RunnerReason]

/** Reason of the Event with type Normal that takes a warning back. */
export const BACKEND_RECOVERED = 'BackendRecovered'
