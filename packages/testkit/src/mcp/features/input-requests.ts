import { isObject, type JsonObject } from '../wire/json-rpc.ts'
import { type InputRequest, MissingCapability } from './call.ts'

export function elicit(message: string, properties: JsonObject, required: string[] = Object.keys(properties)): InputRequest {
  return { method: 'elicitation/create', params: { message, requestedSchema: { type: 'object', properties, required } } }
}

export function elicitUrl(message: string, url: string): InputRequest {
  return { method: 'elicitation/create', params: { mode: 'url', message, url } }
}

export function sample(prompt: string): InputRequest {
  const messages = [{ role: 'user', content: { type: 'text', text: prompt } }]
  return { method: 'sampling/createMessage', params: { messages, maxTokens: 100 } }
}

export function listRoots(): InputRequest {
  return { method: 'roots/list' }
}

/** Legacy era only. Every client must answer it. */
export function ping(): InputRequest {
  return { method: 'ping' }
}

/** Throws {@link MissingCapability} naming everything that these requests need and the client did not declare. */
export function demandDeclared(requests: readonly InputRequest[], declared: JsonObject): void {
  const required: JsonObject = {}
  for (const request of requests) {
    if (!isDeclared(request, declared)) Object.assign(required, neededFor(request))
  }
  if (Object.keys(required).length > 0) throw new MissingCapability(required)
}

export function isDeclared(request: InputRequest, declared: JsonObject): boolean {
  if (request.method === 'ping') return true
  if (request.method === 'sampling/createMessage') return isObject(declared['sampling'])
  if (request.method === 'roots/list') return isObject(declared['roots'])
  const elicitation = declared['elicitation']
  if (!isObject(elicitation)) return false
  if (request.params?.['mode'] === 'url') return isObject(elicitation['url'])
  return isObject(elicitation['form']) || !isObject(elicitation['url'])
}

function neededFor(request: InputRequest): JsonObject {
  if (request.method === 'sampling/createMessage') return { sampling: {} }
  if (request.method === 'roots/list') return { roots: {} }
  return { elicitation: request.params?.['mode'] === 'url' ? { url: {} } : {} }
}
