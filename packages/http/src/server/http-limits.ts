/** Limits of what a server accepts from a client, in size and in time. */
export interface HttpLimits {
  /** All headers of a request together; over it 431. */
  readonly maxHeaderBytes: number
  /** Over it 431: a header that is silently dropped could be the one that protects. */
  readonly maxHeaders: number
  /** From the first byte of a connection, or of its next request, to the end of the headers; over it 408. */
  readonly headersTimeoutMs: number
  /** From the headers to the end of the body; over it 408. */
  readonly bodyTimeoutMs: number
  /** A body must come at least this fast on average, once it has been coming for `bodyGraceMs`; below it 408. */
  readonly minBodyBytesPerSecond: number
  readonly bodyGraceMs: number
  /** How long a connection stays open without a request. Above the 60 s of common load balancers, so that they close first. */
  readonly keepAliveMs: number
  /** A client that takes nothing of an answer for this long is cut off. An answer that is not being written is not counted. */
  readonly stallMs: number
  readonly maxConnections: number
  /** Requests of one connection that are in work at a time. Clients do not pipeline; attackers do. */
  readonly maxPipelined: number
  /** `Retry-After` of new requests during a drain. */
  readonly retryAfterSeconds: number
  /** How long a drain still answers 503 on connections that are idle, before it closes them. */
  readonly drainIdleMs: number
}

export const DEFAULT_LIMITS: HttpLimits = {
  maxHeaderBytes: 16 * 1024,
  maxHeaders: 100,
  headersTimeoutMs: 10_000,
  bodyTimeoutMs: 30_000,
  minBodyBytesPerSecond: 1024,
  bodyGraceMs: 5_000,
  keepAliveMs: 120_000,
  stallMs: 60_000,
  maxConnections: 10_000,
  maxPipelined: 16,
  retryAfterSeconds: 2,
  drainIdleMs: 1_000,
}

/** Those that may be 0; for the others Node would take 0 for "no limit". */
const MAY_BE_ZERO: ReadonlySet<string> = new Set(['bodyGraceMs', 'drainIdleMs', 'minBodyBytesPerSecond', 'retryAfterSeconds'])

export function limitsOf(limits: Partial<HttpLimits> | undefined): HttpLimits {
  const all = { ...DEFAULT_LIMITS, ...limits }
  for (const [name, value] of Object.entries(all))
    if (!(MAY_BE_ZERO.has(name) ? value >= 0 : value > 0) || value === Infinity)
      throw new RangeError(`${name} cannot be ${value}: it must be a limit`)
  return all
}
