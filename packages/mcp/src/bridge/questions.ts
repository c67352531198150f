import { randomUUID } from 'node:crypto'
import { wireErrors } from '@thv/kernel/error-registry'
import { type ErrorObject, isObject, type JsonObject } from '../json-rpc.ts'
import { INPUT_METHODS, METHODS } from '../methods.ts'
import { opensLinks } from '../url-elicitation.ts'
import { type LegacyVersion, NEWEST_LEGACY_VERSION } from '../versions.ts'
import { fillsForms } from './projections.ts'

/** Something that a server asks its client during a call. */
export interface Question {
  readonly method: string
  readonly params: JsonObject
}

/** More links than that are no question to a person. */
const MAX_LINKS = 16

/** Whether the user is to open a link, in place of a form. */
export function isLink({ method, params }: Question): boolean {
  return method === METHODS.elicit && params['mode'] === 'url'
}

/** The capability that a client with these ones lacks. Undefined: it can be asked. */
export function lackedCapability(question: Question, capabilities: JsonObject): JsonObject | undefined {
  const { method } = question
  if (method === METHODS.createMessage) return isObject(capabilities['sampling']) ? undefined : { sampling: {} }
  if (method === METHODS.rootsList) return isObject(capabilities['roots']) ? undefined : { roots: {} }
  if (isLink(question)) return opensLinks(capabilities) ? undefined : { elicitation: { url: {} } }
  return fillsForms(capabilities) ? undefined : { elicitation: {} }
}

const QUESTIONS: ReadonlySet<unknown> = new Set([METHODS.createMessage, METHODS.elicit, METHODS.rootsList])

/** The fault of a result of a modern server that asks for input. Undefined: it may be relayed to a client with these capabilities. */
export function inputProblem({ inputRequests, requestState }: JsonObject, method: string, capabilities: JsonObject): string | undefined {
  if (!INPUT_METHODS.has(method)) return `asks for input in ${method}`
  if (inputRequests === undefined) return requestState === undefined ? 'asks for input without saying which' : undefined
  if (!isObject(inputRequests)) return 'sends inputRequests that are no object'
  for (const request of Object.values(inputRequests)) {
    const asked = isObject(request) ? request['method'] : undefined
    if (!isObject(request) || typeof asked !== 'string' || !QUESTIONS.has(asked)) return 'asks something that no client can be asked'
    const params = isObject(request['params']) ? request['params'] : {}
    const lacked = lackedCapability({ method: asked, params }, capabilities)
    if (lacked !== undefined) return `asks for what the client did not declare: ${JSON.stringify(lacked)}`
  }
  return undefined
}

/** A question of a legacy server for a modern client, which knows no ids of links. */
export function modernQuestion(question: Question): Question {
  if (!isLink(question)) return question
  const { elicitationId: _, ...params } = question.params
  return { ...question, params }
}

/** A question for a legacy client: a link has an id, and revisions before links have no modes. */
export function legacyQuestion(question: Question, version: LegacyVersion): Question {
  const { method, params } = question
  if (method !== METHODS.elicit) return question
  if (isLink(question))
    return typeof params['elicitationId'] === 'string' ? question : { method, params: { ...params, elicitationId: randomUUID() } }
  if (version === NEWEST_LEGACY_VERSION || params['mode'] === undefined) return question
  const { mode: _, ...rest } = params
  return { method, params: rest }
}

/** The links that the user of a legacy server has to open before a call, as questions by key. Undefined: the error is another one. */
export function linkQuestions({ code, data }: ErrorObject): JsonObject | undefined {
  if (code !== wireErrors.url_elicitation_required.jsonRpcCode || !isObject(data)) return undefined
  const { elicitations } = data
  if (!Array.isArray(elicitations)) return undefined
  const links = elicitations.filter((each): each is JsonObject => isObject(each) && typeof each['url'] === 'string').slice(0, MAX_LINKS)
  if (links.length === 0) return undefined
  const questions = links.map((link) => modernQuestion({ method: METHODS.elicit, params: { ...link, mode: 'url' } }))
  return Object.fromEntries(questions.map((question, index) => [`elicitation-${index + 1}`, question]))
}
