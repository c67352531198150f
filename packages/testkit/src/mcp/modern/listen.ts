import type { Change } from '../state/changes.ts'
import type { World } from '../state/world.ts'
import {
  INVALID_PARAMS,
  isObject,
  type JsonObject,
  notification,
  RpcError,
  type RpcNotification,
  type RpcRequest,
} from '../wire/json-rpc.ts'
import { META_SUBSCRIPTION, TASKS_EXTENSION } from '../wire/protocol.ts'
import type { Envelope } from './envelope.ts'
import type { ModernInbound } from './modern-call.ts'

const LIST_FLAGS = { tools: 'toolsListChanged', prompts: 'promptsListChanged', resources: 'resourcesListChanged' } as const

/** Serves `subscriptions/listen` until the client leaves (rejects) or the fixture ends it politely (resolves with the result). */
export async function listen(
  world: World,
  request: RpcRequest,
  { envelope, inbound }: { envelope: Envelope; inbound: ModernInbound },
): Promise<JsonObject> {
  const honoured = honouredFilter(request, envelope)
  const _meta = { [META_SUBSCRIPTION]: request.id }
  const tell = (method: string, params: JsonObject) => inbound.channel.send(notification(method, { ...params, _meta }))
  tell('notifications/subscriptions/acknowledged', { notifications: honoured })

  const stop = world.changes.on((change) => {
    const message = messageFor(change, honoured)
    if (message) tell(message.method, message.params ?? {})
  })
  const ended = Promise.withResolvers<void>()
  const leave = () => ended.reject(inbound.signal.reason)
  inbound.signal.addEventListener('abort', leave, { once: true })
  if (inbound.signal.aborted) leave()
  world.listenEnds.add(ended.resolve)
  world.stats.listens += 1
  try {
    await ended.promise
    return { _meta }
  } finally {
    stop()
    inbound.signal.removeEventListener('abort', leave)
    world.listenEnds.delete(ended.resolve)
    world.stats.listens -= 1
  }
}

function honouredFilter(request: RpcRequest, envelope: Envelope): JsonObject {
  const wanted = request.params?.['notifications']
  if (!isObject(wanted)) throw new RpcError(INVALID_PARAMS, 'notifications must be an object')
  const honoured: JsonObject = {}
  for (const flag of Object.values(LIST_FLAGS)) if (wanted[flag] === true) honoured[flag] = true
  const uris = strings(wanted['resourceSubscriptions'])
  if (uris.length > 0) honoured['resourceSubscriptions'] = uris
  const taskIds = strings(wanted['taskIds'])
  const extensions = envelope.capabilities['extensions']
  if (taskIds.length > 0 && isObject(extensions) && TASKS_EXTENSION in extensions) honoured['taskIds'] = taskIds
  return honoured
}

function messageFor(change: Change, honoured: JsonObject): RpcNotification | undefined {
  if (change.kind === 'list')
    return honoured[LIST_FLAGS[change.list]] ? notification(`notifications/${change.list}/list_changed`) : undefined
  if (change.kind === 'task')
    return strings(honoured['taskIds']).includes(change.taskId) ? notification('notifications/tasks', change.task) : undefined
  const subscribed = strings(honoured['resourceSubscriptions']).includes(change.uri)
  return subscribed ? notification('notifications/resources/updated', { uri: change.uri }) : undefined
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
