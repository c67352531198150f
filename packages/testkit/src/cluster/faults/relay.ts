import type { Socket } from 'node:net'

/** One direction of a proxied connection: a queue of bytes with the time from which each may go on. */
export interface Relay {
  hold(): void
  release(): void
  setLatency(ms: number): void
}

type Item = { readonly due: number; readonly what: Buffer | 'end' | 'reset' }

/** How much is kept for a held or slow direction before the sender is no longer read. */
const queueLimit = 1 << 20

export function createRelay(from: Socket, to: Socket, passed: (bytes: number) => void): Relay {
  const queue: Item[] = []
  let queued = 0
  let held = false
  let blocked = false // `to` has not drained
  let latencyMs = 0
  let timer: NodeJS.Timeout | undefined

  from.on('data', (chunk: Buffer) => {
    queued += chunk.length
    if (queued > queueLimit) from.pause()
    enqueue(chunk)
  })
  from.once('end', () => enqueue('end'))
  // A reset, or a refused connection. A held direction must hide this as well.
  from.on('error', () => enqueue('reset'))
  to.on('drain', () => {
    blocked = false
    flush()
  })
  // That `to` is gone reaches `from` by the relay of the other direction, when that one is not held.
  to.once('close', () => {
    clearTimeout(timer)
    queue.length = 0
  })

  function enqueue(what: Item['what']): void {
    queue.push({ due: performance.now() + latencyMs, what })
    flush()
  }

  function flush(): void {
    clearTimeout(timer)
    while (!held && !blocked) {
      const item = queue[0]
      if (!item) return
      const wait = item.due - performance.now()
      if (wait > 0) {
        timer = setTimeout(flush, Math.ceil(wait))
        return
      }
      queue.shift()
      pass(item.what)
    }
  }

  function pass(what: Item['what']): void {
    if (to.destroyed) from.resetAndDestroy()
    else if (what === 'end') to.end()
    else if (what === 'reset') to.resetAndDestroy()
    else {
      queued -= what.length
      passed(what.length)
      blocked = !to.write(what)
      if (queued <= queueLimit / 2) from.resume()
    }
  }

  return {
    hold: () => {
      held = true
    },
    release: () => {
      held = false
      flush()
    },
    setLatency: (ms) => {
      latencyMs = ms
    },
  }
}
