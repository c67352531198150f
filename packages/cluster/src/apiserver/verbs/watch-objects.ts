import type { ServerResponse } from 'node:http'
import type { Timer } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { Change } from '../../store/change-log.ts'
import type { StoredObject } from '../../store/stored-object.ts'
import { headerOf } from '../http/read-input.ts'
import { type ApiCall, flagOf, formOf, numberOf, revisionOf } from '../http/request-context.ts'
import { notAcceptable, partialObject, wantsYaml } from '../http/response-form.ts'
import { type IncludeObject, includeObject, tableOf } from '../http/table.ts'
import { eventText, servedObject, servedText, sharedEvent } from '../objects/object-encoder.ts'
import { readStored } from '../objects/read-stored.ts'
import { objectFilter } from '../objects/selectors.ts'
import { apiVersionOf } from '../objects/served-kind.ts'
import { expired, tooLargeVersion } from '../objects/status-error.ts'
import { askedRevision, refusedElsewhere } from './list-objects.ts'
import { checkListOptions } from './list-options.ts'

const BOOKMARK_MS = 60_000
const MIN_WATCH_MS = 30 * 60_000

/** Answers with events for as long as the client stays, at most for timeoutSeconds. */
export function watchObjects(call: ApiCall): void {
  const { env, query } = call
  checkListOptions(query)
  if (wantsYaml(headerOf(call.exchange, 'accept'))) throw notAcceptable('a watch is answered in JSON only')
  const asked = askedRevision(query, refusedElsewhere)
  if (asked > env.store.revision) throw tooLargeVersion(asked, env.store.revision)
  new WatchStream(call, asked).start()
}

/**
 * Reads the log of changes as fast as the client takes them. It holds no queue: what the client has not taken stays in the log, and when
 * the log has forgotten it the watch ends with 410, or, when the client does not even take that, with its connection.
 */
class WatchStream {
  readonly #call: ApiCall
  readonly #response: ServerResponse
  readonly #filter: ReturnType<typeof objectFilter>
  readonly #table: IncludeObject | undefined
  readonly #partial: boolean
  readonly #prefix: string
  readonly #timers: Timer[] = []
  /** Objects of the beginning that are still to be sent. */
  #initial: Iterator<StoredObject> | undefined
  #initialBookmark: boolean
  /** Everything up to it has been sent. */
  #cursor: number
  #blocked = false
  #scheduled = false
  #ended = false
  #headSent = false
  #unsubscribe: () => void = () => undefined

  constructor(call: ApiCall, asked: number) {
    const { query, path, kind, env } = call
    this.#call = call
    this.#response = call.exchange.response
    this.#filter = objectFilter(kind, query)
    const form = formOf(call)
    this.#table = form === 'Table' ? includeObject(query) : undefined
    this.#partial = form === 'PartialObjectMetadata' || form === 'PartialObjectMetadataList'
    this.#prefix = path.namespace === undefined ? '' : `${path.namespace}/`
    const wantsState = flagOf(query, 'sendInitialEvents')
    this.#initialBookmark = wantsState && flagOf(query, 'allowWatchBookmarks')
    this.#cursor = asked
    if (asked > 0 && !wantsState) return
    const page = env.store.list({ type: kind.type, namespace: path.namespace, keep: this.#filter })
    if (page === 'expired') return
    this.#cursor = page.revision
    if (wantsState || !query.has('sendInitialEvents')) this.#initial = page.objects.values()
  }

  start(): void {
    const { env, exchange, kind, query } = this.#call
    this.#response.writeHead(200, ['Content-Type', 'application/json', 'Cache-Control', 'no-cache, private'])
    this.#response.flushHeaders()
    this.#response.on('drain', () => {
      this.#blocked = false
      this.#pump()
    })
    this.#unsubscribe = env.store.onChange(kind.type, () => this.#changed())
    exchange.addEventListener('abort', { handleEvent: () => this.#stop() })
    const seconds = numberOf(query, 'timeoutSeconds')
    const lifeMs = seconds !== undefined && seconds > 0 ? seconds * 1_000 : MIN_WATCH_MS * (1 + Math.random())
    this.#timers.push(env.clock.setTimer(lifeMs, () => this.#timeUp()))
    if (flagOf(query, 'allowWatchBookmarks')) this.#bookmarkLater()
    this.#pump()
  }

  #changed(): void {
    if (this.#blocked) {
      if (this.#call.env.store.log(this.#call.kind.type).oldest > this.#cursor) this.#cutOff()
      return
    }
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#pump()
    })
  }

  #pump(): void {
    while (!this.#ended && !this.#blocked) {
      const first = this.#initial?.next()
      if (first !== undefined && !first.done) {
        this.#write(Buffer.from(`${this.#eventOf('ADDED', first.value)}\n`))
        continue
      }
      this.#initial = undefined
      if (this.#initialBookmark) this.#bookmark(true)
      const log = this.#call.env.store.log(this.#call.kind.type)
      if (log.oldest > this.#cursor) {
        this.#fail(expired(`too old resource version: ${this.#cursor} (${log.oldest})`).body)
        return
      }
      const change = log.next(this.#cursor)
      if (change === undefined) return
      this.#cursor = change.revision
      this.#send(change)
    }
  }

  /** With a selector an object that comes to match is new to the watcher, and one that ceases to is gone. */
  #send(change: Change): void {
    const { current, previous, deleted } = change
    if (!current.key.startsWith(this.#prefix)) return
    const fits = this.#filter ?? (() => true)
    const before = previous !== undefined && fits(previous)
    const after = !deleted && fits(current)
    if (after) this.#sendShared(change, before ? 'MODIFIED' : 'ADDED', current)
    else if (before && deleted) this.#sendShared(change, 'DELETED', current)
    else if (before) this.#write(Buffer.from(`${this.#eventOf('DELETED', atRevision(previous, change.revision))}\n`))
  }

  #sendShared(change: Change, type: string, object: StoredObject | JsonObject): void {
    const { kind } = this.#call
    const form = `${type} ${apiVersionOf(kind)} ${this.#table ?? ''} ${this.#partial}`
    // The first Table of a watch has the column definitions, so no other watch shares it.
    if (this.#table !== undefined && !this.#headSent) this.#write(Buffer.from(`${this.#eventOf(type, object)}\n`))
    else this.#write(sharedEvent(change, form, () => this.#eventOf(type, object)))
  }

  #eventOf(type: string, given: StoredObject | JsonObject): string {
    const { kind, env } = this.#call
    const stored = isStored(given) ? readStored(kind, given) : undefined
    const body = stored?.body ?? (given as JsonObject)
    if (this.#partial) return eventText(type, JSON.stringify(partialObject(body)))
    if (this.#table === undefined) return eventText(type, stored ? servedText(kind, stored) : JSON.stringify(servedObject(kind, body)))
    const headless = this.#headSent
    this.#headSent = true
    const options = { include: this.#table, now: env.clock.now(), headless, metadata: revisionOf(body) }
    return eventText(type, JSON.stringify(tableOf(kind, [body], options)))
  }

  #write(bytes: Buffer): void {
    if (!this.#response.write(bytes)) this.#blocked = true
  }

  #bookmarkLater(): void {
    this.#timers.push(
      this.#call.env.clock.setTimer(BOOKMARK_MS, () => {
        this.#timers.splice(1)
        if (!this.#ended) this.#bookmarkLater()
        this.#bookmark()
      }),
    )
  }

  /** Says how far the watcher is; only when it is, and when it takes what it is sent. */
  #bookmark(endOfState = false): void {
    if (this.#ended || this.#blocked || (this.#initial !== undefined && !endOfState)) return
    const { env, kind } = this.#call
    if (!endOfState) {
      const log = env.store.log(kind.type)
      if (log.oldest > this.#cursor || log.next(this.#cursor) !== undefined) return
      this.#cursor = env.store.revision
    }
    this.#initialBookmark = false
    const annotations = endOfState ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
    const body = { metadata: { resourceVersion: String(this.#cursor), creationTimestamp: null, ...annotations } }
    this.#write(Buffer.from(`${this.#eventOf('BOOKMARK', body)}\n`))
  }

  #timeUp(): void {
    if (flagOf(this.#call.query, 'allowWatchBookmarks')) this.#bookmark()
    this.#stop()
    this.#response.end()
  }

  #fail(status: object): void {
    this.#stop()
    this.#response.end(`${eventText('ERROR', JSON.stringify(status))}\n`)
  }

  #cutOff(): void {
    this.#stop()
    this.#call.exchange.destroy(new Error('the watcher does not read'))
  }

  #stop(): void {
    this.#ended = true
    this.#unsubscribe()
    for (const timer of this.#timers.splice(0)) timer.cancel()
  }
}

function isStored(object: StoredObject | JsonObject): object is StoredObject {
  return 'text' in object && 'revision' in object && typeof object['revision'] === 'number' && 'body' in object
}

function atRevision(object: StoredObject, revision: number): JsonObject {
  const metadata = object.body['metadata'] as JsonObject
  return { ...object.body, metadata: { ...metadata, resourceVersion: String(revision) } }
}
