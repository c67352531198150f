import { ThvError } from '@thv/kernel/errors'
import type { KubeStatus } from '@thv/kube/objects/types'
import type { FieldProblem } from '@thv/kube-schema/kind-schema'

export type StatusDetails = NonNullable<KubeStatus['details']>

export interface StatusInit {
  readonly code: number
  readonly reason: string
  readonly message: string
  readonly details?: StatusDetails
  /** Of the metadata of the Status: a way to go on after an expired list. */
  readonly continue?: string
}

/** Names a kind in messages: `deployments.apps` for what is asked for, `Deployment.apps` for what is wrong with it. */
export interface KindName {
  readonly group: string
  readonly kind: string
  readonly plural: string
}

/** A refusal, worded as the real API server words it: clients and people know those sentences. */
export class StatusError extends ThvError {
  readonly init: StatusInit

  constructor(init: StatusInit) {
    super('kube_status', init.message, { details: { status: init.code, reason: init.reason } })
    this.init = init
  }

  get body(): object {
    return failure(this.init)
  }
}

export function failure({ code, reason, message, details, continue: token }: StatusInit): object {
  const metadata = token === undefined ? {} : { continue: token }
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata,
    status: 'Failure',
    message,
    ...(reason === '' ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  }
}

export function success(kind: KindName, object: { name: string; uid: string }): object {
  const details = { name: object.name, ...groupOf(kind), kind: kind.plural, uid: object.uid }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}

export function notFound(kind: KindName, name: string): StatusError {
  const message = `${resourceName(kind)} "${name}" not found`
  return new StatusError({ code: 404, reason: 'NotFound', message, details: { name, ...groupOf(kind), kind: kind.plural } })
}

/** The path leads nowhere: no such resource, or no such subresource. */
export function noSuchPath(): StatusError {
  return new StatusError({ code: 404, reason: 'NotFound', message: 'the server could not find the requested resource', details: {} })
}

export function alreadyExists(kind: KindName, name: string): StatusError {
  const message = `${resourceName(kind)} "${name}" already exists`
  return new StatusError({ code: 409, reason: 'AlreadyExists', message, details: { name, ...groupOf(kind), kind: kind.plural } })
}

export function conflict(kind: KindName, name: string, why = STALE): StatusError {
  const message = `Operation cannot be fulfilled on ${resourceName(kind)} "${name}": ${why}`
  return new StatusError({ code: 409, reason: 'Conflict', message, details: { name, ...groupOf(kind), kind: kind.plural } })
}

const STALE = 'the object has been modified; please apply your changes to the latest version and try again'

export function invalid(kind: KindName, name: string, problems: readonly FieldProblem[]): StatusError {
  const texts = [...new Set(problems.map(({ detail }) => detail))]
  const joined = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  const qualified = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
  const causes = problems.map(({ reason, message, field }) => ({ reason, message, field }))
  const details = { ...(name === '' ? {} : { name }), ...groupOf(kind), ...(kind.kind === '' ? {} : { kind: kind.kind }), causes }
  return new StatusError({ code: 422, reason: 'Invalid', message: `${qualified} "${name}" is invalid: ${joined}`, details })
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message })
}

export function forbidden(kind: KindName, name: string, why: string, causes?: StatusDetails['causes']): StatusError {
  const details = { name, ...groupOf(kind), kind: kind.plural, ...(causes ? { causes } : {}) }
  return new StatusError({ code: 403, reason: 'Forbidden', message: `${resourceName(kind)} "${name}" is forbidden: ${why}`, details })
}

export function unauthorized(): StatusError {
  return new StatusError({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' })
}

export function methodNotAllowed(): StatusError {
  const message = 'the server does not allow this method on the requested resource'
  return new StatusError({ code: 405, reason: 'MethodNotAllowed', message, details: {} })
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`
  return new StatusError({ code: 415, reason: 'UnsupportedMediaType', message })
}

export function expired(message: string, token?: string): StatusError {
  return new StatusError({ code: 410, reason: 'Expired', message, ...(token === undefined ? {} : { continue: token }) })
}

export function tooLargeVersion(asked: number, current: number): StatusError {
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }]
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`
  return new StatusError({ code: 504, reason: 'Timeout', message, details: { causes, retryAfterSeconds: 1 } })
}

export function problem(field: string, reason: FieldProblem['reason'], message: string): FieldProblem {
  return { field, reason, message, detail: `${field}: ${message}` }
}

export const invalidValue = (field: string, value: unknown, why: string): FieldProblem =>
  problem(field, 'FieldValueInvalid', `Invalid value: ${JSON.stringify(value)}: ${why}`)
export const requiredValue = (field: string, why = ''): FieldProblem =>
  problem(field, 'FieldValueRequired', why === '' ? 'Required value' : `Required value: ${why}`)
export const forbiddenValue = (field: string, why: string): FieldProblem => problem(field, 'FieldValueForbidden', `Forbidden: ${why}`)

function resourceName({ group, plural }: KindName): string {
  return group === '' ? plural : `${plural}.${group}`
}

function groupOf({ group }: KindName): { group?: string } {
  return group === '' ? {} : { group }
}
