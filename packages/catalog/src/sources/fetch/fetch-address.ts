import type { ResponseFlow, ResponseSink } from '@thv/http/outbound/outbound-call'

/**
 * The place of an attempt among those that may work at the same time. What only waits for the network leaves it, so that others need not
 * wait too; whatever costs time or memory is done in it.
 */
export interface FetchPlace {
  /** From now on only the network is waited for. If that lasts, somebody else may have the place. */
  leave(): void
  /** Resolves when it has its place again; rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<void>
}

export interface Placed {
  /** Left out: it has one all the time. */
  readonly place?: FetchPlace | undefined
  readonly signal: AbortSignal
}

/** Of a whole attempt. What has received more is not waiting but large, and needs its place for the rest. */
const FEW_BYTES = 4 * 1024 * 1024

/** `receivedBytes`: what the attempt has received before. */
export async function awayFromPlace<T>({ place, signal }: Placed, work: () => Promise<T>, receivedBytes = 0): Promise<T> {
  if (!place || receivedBytes > FEW_BYTES) return await work()
  place.leave()
  try {
    return await work()
  } finally {
    await place.take(signal)
  }
}

export interface PlacedSinkOptions extends Placed {
  readonly receivedBytes: number
  /** The backend is stopped until there is a place; then it goes on. */
  readonly onStop?: () => void
  readonly onGoOn?: () => void
}

/** For what is sent `awayFromPlace`: beyond few bytes nothing more is received until there is a place for it. */
export function placedSink(sink: ResponseSink, { place, signal, receivedBytes, onStop, onGoOn }: PlacedSinkOptions): ResponseSink {
  if (!place) return sink
  let left = FEW_BYTES - receivedBytes
  let flow: ResponseFlow | undefined
  let taken = left < 0
  return {
    start(status, headers, given) {
      flow = given
      sink.start(status, headers, given)
    },
    data(chunk) {
      sink.data(chunk)
      left -= chunk.length
      if (left >= 0 || taken) return
      taken = true
      flow?.pause()
      onStop?.()
      const goOn = () => {
        onGoOn?.()
        flow?.resume()
      }
      place.take(signal).then(goOn, () => {}) // the same signal has ended the call
    },
    end: () => sink.end(),
  }
}
