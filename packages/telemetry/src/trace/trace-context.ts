import { randomFillSync } from 'node:crypto'

/** The place of one exchange in a trace (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits: the span of this exchange, the parent of what the backend does. */
  readonly spanId: string
  readonly parentSpanId: string | undefined
  /** The span is sent to the collector. */
  readonly sampled: boolean
  /** `tracestate` of the client, passed on as it is. */
  readonly state: string | undefined
}

export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)

/** Undefined for what is not valid. A later version may have more behind the flags (§4.1 of the recommendation). */
export function parseTraceparent(text: unknown): TraceParent | undefined {
  const match = typeof text === 'string' && text.length <= 256 ? TRACEPARENT.exec(text) : null
  if (match === null) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = match
  if (version === 'ff' || (version === '00' && more !== undefined) || traceId === NO_TRACE || spanId === NO_SPAN) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/** 512 characters at least must be passed on; longer ones may be dropped (§3.3.1.5). */
export function parseTracestate(text: unknown): string | undefined {
  return typeof text === 'string' && text.length <= 512 && /^[\x20-\x7e]+$/.test(text) ? text : undefined
}

export interface SamplerOptions {
  /** From 0 to 1. */
  readonly rate: number
  /** A client's sampled flag counts as it is; otherwise it cannot raise the rate. */
  readonly trustsParent: boolean
  /** In [0, 1). */
  readonly random?: () => number
}

export type TraceStarter = (parent: TraceParent | undefined, state: string | undefined) => TraceContext

/** Parent-based: a trace that the client does not sample is not sampled here either. */
export function createTraceStarter({ rate, trustsParent, random = Math.random }: SamplerOptions): TraceStarter {
  return (parent, state) => {
    if (parent === undefined)
      return { traceId: randomHex(16), spanId: randomHex(8), parentSpanId: undefined, sampled: random() < rate, state: undefined }
    const sampled = parent.sampled && (trustsParent || random() < rate)
    return { traceId: parent.traceId, spanId: randomHex(8), parentSpanId: parent.spanId, sampled, state }
  }
}

/** Random bytes are fetched in blocks: a call for each id would cost more than all else. */
const pool = Buffer.alloc(4_096)
let used = pool.length

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  const hex = pool.toString('hex', used - bytes, used)
  return /[^0]/.test(hex) ? hex : `${hex.slice(0, -1)}1` // an id of zeros is not valid
}
