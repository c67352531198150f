import { abortable } from '@thv/kernel/deadline'
import { META, stripParams } from '../envelope.ts'
import { isObject, type JsonRpcNotification } from '../json-rpc.ts'
import { METHODS, NOTIFICATIONS } from '../methods.ts'
import type { ParsedMessage } from '../parse-body.ts'
import { tell } from './client-context.ts'
import { protocolError, streamBroken } from './client-errors.ts'
import type { EngineListening, EngineListenOptions } from './engine.ts'
import { responseOf, resultOf } from './link.ts'
import type { ListenFilter } from './mcp-client.ts'
import type { ModernEngine } from './modern-engine.ts'

/** `subscriptions/listen`. Open once the server has acknowledged it, which it must do before it says anything else. */
export async function openModernListening(
  engine: ModernEngine,
  filter: ListenFilter,
  options: EngineListenOptions,
): Promise<EngineListening> {
  const { context, link } = engine
  const request = engine.stamped(METHODS.listen, { notifications: filter })
  const life = new AbortController()
  const acknowledged = Promise.withResolvers<ListenFilter>()
  let isOpen = false

  function notified(notification: JsonRpcNotification): void {
    const params = notification.params ?? {}
    if (isOpen) {
      tell(context, options.onNotification, { ...notification, params: stripParams(params) })
    } else if (notification.method === NOTIFICATIONS.subscriptionsAcknowledged) {
      isOpen = true
      acknowledged.resolve(isObject(params['notifications']) ? params['notifications'] : {})
    } else {
      life.abort(protocolError('spoke on a listen stream before acknowledging it'))
    }
  }

  /** Over HTTP the stream is the subscription's own, so what is not marked as such is not wanted there. */
  function receive(message: ParsedMessage): void {
    const meta = message.kind === 'notification' ? message.message.params?.['_meta'] : undefined
    if (message.kind === 'notification' && isObject(meta) && meta[META.subscriptionId] === request.id) notified(message.message)
    else context.warn('ignored a message on a listen stream that does not belong to it')
  }

  async function run(): Promise<void> {
    const signal = AbortSignal.any([life.signal, engine.over])
    try {
      const answer = await link.request(request, { signal, receive, purpose: 'stream' })
      resultOf(responseOf(answer, request), answer.status)
    } finally {
      engine.listenings.delete(request.id)
    }
  }

  engine.listenings.set(request.id, notified)
  const running = run()
  const endedEarly = running.then(() => Promise.reject(streamBroken(METHODS.listen)))
  endedEarly.catch(() => {}) // handled by the caller that waits for the acknowledgement, if there is one
  try {
    const honoured = await abortable(Promise.race([acknowledged.promise, endedEarly]), options.signal)
    return { honoured, ended: running, close }
  } catch (error) {
    await close()
    throw error
  }

  async function close(): Promise<void> {
    if (!life.signal.aborted && engine.listenings.has(request.id)) await engine.cancel(request.id, 'not needed any more')
    life.abort()
  }
}
