/**
 * The subscriptions of the sessions of one process. The process knows one client only, so it is notified of the first subscriber and
 * of the leaving of the last. A subscription counts once the process has accepted it. Changes of one URI are made one after another,
 * or a subscribe could overtake the unsubscribe before it.
 */
export class Subscriptions<S> {
  readonly #byUri = new Map<string, Set<S>>()
  readonly #queues = new Map<string, Promise<unknown>>()

  /** `forward` asks the process, and is called only for the first subscriber; its result is returned. */
  subscribe<R extends Forwarded>(session: S, uri: string, forward: () => Promise<R>): Promise<R | Accepted> {
    return this.#inTurn(uri, async () => {
      const subscribers = this.#byUri.get(uri)
      if (subscribers !== undefined) {
        subscribers.add(session)
        return ACCEPTED
      }
      const answer = await forward()
      if (answer.accepted) this.#byUri.set(uri, new Set([session]))
      return answer
    })
  }

  /** Gone at once for the session, whatever the process says. Of a session that had not subscribed the process never hears. */
  unsubscribe<R extends Forwarded>(session: S, uri: string, forward: () => Promise<R>): Promise<R | Accepted> {
    return this.#inTurn(uri, async () => {
      const subscribers = this.#byUri.get(uri)
      if (subscribers === undefined || !subscribers.delete(session) || subscribers.size > 0) return ACCEPTED
      this.#byUri.delete(uri)
      return await forward()
    })
  }

  /** The session is over. Returns the URIs without subscribers, of which the process should be notified. */
  leave(session: S): string[] {
    const abandoned: string[] = []
    for (const [uri, subscribers] of this.#byUri) {
      if (!subscribers.delete(session) || subscribers.size > 0) continue
      this.#byUri.delete(uri)
      abandoned.push(uri)
    }
    return abandoned
  }

  /** A session that comes with subscriptions of earlier. Gives the URIs that are new here, of which the process should be notified. */
  restore(session: S, uris: Iterable<string>): string[] {
    const added: string[] = []
    for (const uri of uris) {
      const subscribers = this.#byUri.get(uri)
      if (subscribers !== undefined) subscribers.add(session)
      else {
        this.#byUri.set(uri, new Set([session]))
        added.push(uri)
      }
    }
    return added
  }

  subscribersOf(uri: string): ReadonlySet<S> {
    return this.#byUri.get(uri) ?? new Set()
  }

  get uris(): string[] {
    return [...this.#byUri.keys()]
  }

  #inTurn<T>(uri: string, work: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(uri)
    const turn = before === undefined ? work() : before.then(work, work)
    this.#queues.set(uri, turn)
    const clear = () => {
      if (this.#queues.get(uri) === turn) this.#queues.delete(uri)
    }
    turn.then(clear, clear)
    return turn
  }
}

export interface Forwarded {
  readonly accepted: boolean
}

export interface Accepted extends Forwarded {
  readonly accepted: true
}

export const ACCEPTED: Accepted = { accepted: true }
