import type { Clock, Timer } from '@thv/kernel/clock'
import type WebSocket from 'ws'

export interface KeepAliveOptions {
  readonly clock: Clock
  readonly intervalMs: number
  readonly limitMs: number
  readonly onDead: () => void
}

export interface KeepAlive {
  /** A sign of life. */
  beat(): void
  /** Nothing is read for a while, so nothing is to be heard. */
  suspend(): void
  resume(): void
  stop(): void
}

/**
 * Pings over a connection on which nothing comes, and reports when no answer has come for too long. What counts is pings without an
 * answer and not time alone: a process that stood still for a minute has heard nothing, and that is not the other side's fault.
 */
export function keepAlive(socket: WebSocket, { clock, intervalMs, limitMs, onDead }: KeepAliveOptions): KeepAlive {
  const limit = Math.max(1, Math.ceil(limitMs / intervalMs))
  let unanswered = 0
  let suspended = false
  let timer: Timer | undefined = clock.setTimer(intervalMs, tick)

  function tick(): void {
    timer = clock.setTimer(intervalMs, tick)
    if (suspended || socket.readyState !== socket.OPEN) return
    // With input still waiting in the socket the other side may just be slow to take it, and our ping stands behind it.
    if (unanswered >= limit && socket.bufferedAmount === 0) {
      stop()
      onDead()
      return
    }
    unanswered++
    socket.ping()
  }

  function stop(): void {
    timer?.cancel()
    timer = undefined
  }

  return {
    beat() {
      unanswered = 0
    },
    suspend() {
      suspended = true
    },
    resume() {
      suspended = false
      unanswered = 0
    },
    stop,
  }
}
