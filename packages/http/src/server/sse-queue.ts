/**
 * The fate of a frame when the client is slower than its source: progress is dropped first, then logs; a message (a response,
 * a request, any other notification) never.
 */
export type FrameKind = 'message' | 'log' | 'progress'

export interface Frame {
  readonly bytes: Uint8Array
  readonly kind: FrameKind
  /** A frame that says no more than another with the same key that still waits, such as "the list has changed". */
  readonly key?: string | undefined
}

export interface SseQueueLimits {
  readonly maxFrames: number
  readonly maxBytes: number
  readonly onDrop?: ((kind: FrameKind) => void) | undefined
}

export type OfferOutcome = 'queued' | 'coalesced' | 'dropped' | 'overflow'

/** Frames on their way to a client that is not reading fast enough. Bounded, in order. */
export class SseQueue {
  readonly #limits: SseQueueLimits
  readonly #frames: Frame[] = []
  #bytes = 0

  constructor(limits: SseQueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#frames.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * `overflow`: a message found no room although everything that may be dropped was. The bounds are passed by one frame at most, so
   * that an empty queue takes a message of any size.
   */
  offer(frame: Frame): OfferOutcome {
    if (frame.key !== undefined && this.#frames.some(({ key }) => key === frame.key)) return 'coalesced'
    while (this.#full) {
      const victim = this.#victim(frame.kind)
      if (victim === undefined) return 'overflow'
      if (victim < 0) {
        this.#limits.onDrop?.(frame.kind)
        return 'dropped'
      }
      this.#drop(victim)
    }
    this.#frames.push(frame)
    this.#bytes += frame.bytes.byteLength
    return 'queued'
  }

  shift(): Frame | undefined {
    const frame = this.#frames.shift()
    if (frame) this.#bytes -= frame.bytes.byteLength
    return frame
  }

  clear(): void {
    this.#frames.length = 0
    this.#bytes = 0
  }

  get #full(): boolean {
    return this.#frames.length >= this.#limits.maxFrames || this.#bytes >= this.#limits.maxBytes
  }

  /** The oldest progress, else the newcomer if it is one (-1); the same with logs. Newer progress makes older worthless. */
  #victim(incoming: FrameKind): number | undefined {
    for (const kind of DROPPABLE) {
      const at = this.#frames.findIndex((frame) => frame.kind === kind)
      if (at >= 0) return at
      if (incoming === kind) return -1
    }
    return undefined
  }

  #drop(at: number): void {
    const [frame] = this.#frames.splice(at, 1)
    if (!frame) return
    this.#bytes -= frame.bytes.byteLength
    this.#limits.onDrop?.(frame.kind)
  }
}

const DROPPABLE: readonly FrameKind[] = ['progress', 'log']
