/** Settings of a stdio backend from RunConfig, with every limit of the bridge. Times are milliseconds. */
export interface StdioConfig {
  /** For logs and for the name under which a shared process knows its client. */
  readonly name: string
  readonly version: string
  /** `auto`: what the server turns out to speak. */
  readonly era: 'auto' | 'legacy' | 'modern'
  readonly isolation: 'auto' | 'session' | 'shared'
  /** Processes that belong to one session each; the shared ones and the modern one come on top. */
  readonly maxProcesses: number
  readonly sessionTtlMs: number
  /** Each has a stream open all the time. */
  readonly maxSseClients: number
  /** Silence after which a call is given up; progress counts as a sign of life, and so does a question that the client has not answered yet. */
  readonly idleTimeoutMs: number
  /** No call lives longer, whatever it says. */
  readonly hardTimeoutMs: number
  /** For a question of the server to the person at the client. */
  readonly askTimeoutMs: number
  /** Until a process has been started and has answered the handshake. */
  readonly startTimeoutMs: number
  /** How long a modern probe waits once the process has written anything; before that it waits for `startTimeoutMs`, at most 30 s. */
  readonly probeTimeoutMs: number
  /** A cancelled call still counts for attribution this long: the server may not have noticed yet. */
  readonly ghostMs: number
  /** An answered call still counts for attribution this long, against other parties: the server may log or ask a little late. */
  readonly lateMs: number
  /** A POST that is not answered by then becomes an event stream, so that something can be sent to keep it open. */
  readonly streamAfterMs: number
  /** Calls under way per process; more are refused with Retry-After. */
  readonly maxInFlight: number
  readonly maxListens: number
  readonly maxLineBytes: number
  readonly backoff: { readonly baseMs: number; readonly maxMs: number }
  /** A process that lived this long was no crash: the next one may start at once. */
  readonly stableMs: number
  /** A request waits for a delayed start up to this long; beyond it the client receives Retry-After. */
  readonly maxStartDelayMs: number
  /** How long the pipe may stand still for a client that has much to take: of a process that it shares, and of one of its own. */
  readonly sharedHoldMs: number
  readonly ownHoldMs: number
  /** Events that a session keeps for clients that come back. */
  readonly replayEvents: number
  readonly replayBytes: number
  /** The prefix that HTTP+SSE clients must put before `/messages`. */
  readonly endpointPrefix: string
  readonly trustProxyHeaders: boolean
}

export type StdioSettings = Partial<StdioConfig> & Pick<StdioConfig, 'name'>

const MINUTE = 60_000

const STDIO_DEFAULTS: Omit<StdioConfig, 'name'> = {
  version: '0.1.0',
  era: 'auto',
  isolation: 'auto',
  maxProcesses: 8,
  sessionTtlMs: 120 * MINUTE,
  maxSseClients: 10_000,
  idleTimeoutMs: MINUTE,
  hardTimeoutMs: 10 * MINUTE,
  askTimeoutMs: 10 * MINUTE,
  startTimeoutMs: MINUTE,
  probeTimeoutMs: 3_000,
  ghostMs: MINUTE,
  lateMs: MINUTE,
  streamAfterMs: 5_000,
  maxInFlight: 1_024,
  maxListens: 1_024,
  maxLineBytes: 10 * 1024 * 1024,
  backoff: { baseMs: 250, maxMs: 30_000 },
  stableMs: 10_000,
  maxStartDelayMs: 1_000,
  sharedHoldMs: 50,
  ownHoldMs: 10_000,
  replayEvents: 256,
  replayBytes: 256 * 1024,
  endpointPrefix: '',
  trustProxyHeaders: false,
}

export function stdioConfig(settings: StdioSettings): StdioConfig {
  return { ...STDIO_DEFAULTS, ...settings }
}
