import { asStatus, isRecord } from '../client/response-body.ts'
import type { KubeStatus } from '../objects/types.ts'

/** Kubernetes 1.30 and later. A frame is one byte that names the channel, and the bytes. */
export const PROTOCOL = 'v5.channel.k8s.io'

export const STDIN = 0
export const STDOUT = 1
export const STDERR = 2
/** One Status at the end: how the command ended. */
export const STATUS = 3
/** The second byte names the channel that ends. What v5 adds over v4: the end of stdin. */
export const CLOSE = 255

export const STDIN_END = Buffer.from([CLOSE, STDIN])

/** The kubelet itself sends at most this much at a time. */
const MAX_FRAME = 32 << 10

export function* stdinFrames(bytes: Uint8Array): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += MAX_FRAME) {
    const part = bytes.subarray(start, start + MAX_FRAME)
    const frame = Buffer.allocUnsafe(part.length + 1)
    frame[0] = STDIN
    frame.set(part, 1)
    yield frame
  }
}

/** Undefined when it is none. */
export function parseStatusFrame(bytes: Buffer): KubeStatus | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    if (!isRecord(value) || (value.status !== 'Success' && value.status !== 'Failure')) return undefined
    return { ...asStatus({ ...value, kind: 'Status' }), status: value.status }
  } catch {
    return undefined // the caller reports a frame that is no Status
  }
}

/** 0 for success; undefined when the Status tells of something else than the end of a program. */
export function exitCodeOf(status: KubeStatus): number | undefined {
  if (status.status === 'Success') return 0
  if (status.reason !== 'NonZeroExitCode') return undefined
  const code = Number(status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message)
  return Number.isInteger(code) ? code : undefined
}
