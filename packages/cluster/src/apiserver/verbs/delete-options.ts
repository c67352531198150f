import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { flagOf, numberOf } from '../http/request-context.ts'
import { at, isObject, textAt } from '../objects/served-kind.ts'
import { invalid, invalidValue, problem, StatusError } from '../objects/status-error.ts'
import { dryRunProblems } from './write-options.ts'

export interface DeleteOptions {
  readonly dryRun: boolean
  readonly graceSeconds: number | undefined
  /** Empty where the finalizers of the object decide. */
  readonly propagation: string
  /** Preconditions on the object. An empty text fits no object. */
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

/** The options are the body, or where there is none the query: never both. */
export function deleteOptions(query: URLSearchParams, body: Json | undefined): DeleteOptions {
  if (body !== undefined) checkTypes(body)
  const given = body === undefined ? fromQuery(query) : isObject(body) ? body : {}
  const [orphan, policy, dryRun] = [given['orphanDependents'], given['propagationPolicy'] ?? undefined, given['dryRun']]
  const problems: FieldProblem[] = []
  if (policy !== undefined && typeof orphan === 'boolean')
    problems.push(invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'))
  if (policy !== undefined && !POLICIES.has(policy)) {
    const message = `Unsupported value: ${JSON.stringify(policy)}: supported values: "Foreground", "Background", "Orphan", "nil"`
    problems.push(problem('propagationPolicy', 'FieldValueNotSupported', message))
  }
  const runs = Array.isArray(dryRun) ? (dryRun as readonly Json[]) : []
  problems.push(...dryRunProblems(runs))
  if (problems.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions', plural: '' }, '', problems)
  const grace = given['gracePeriodSeconds']
  return {
    dryRun: runs.length > 0,
    graceSeconds: typeof grace === 'number' ? grace : undefined,
    propagation: typeof policy === 'string' ? policy : orphan === true ? 'Orphan' : orphan === false ? 'Background' : '',
    uid: preconditionOf(given, 'uid'),
    resourceVersion: preconditionOf(given, 'resourceVersion'),
  }
}

const POLICIES: ReadonlySet<unknown> = new Set(['Orphan', 'Background', 'Foreground'])

function preconditionOf(options: JsonObject, name: string): string | undefined {
  const value = at(options, 'preconditions', name)
  return typeof value === 'string' ? value : undefined
}

function fromQuery(query: URLSearchParams): JsonObject {
  const text = (name: string) => (query.has(name) ? { [name]: query.get(name) ?? '' } : {})
  const grace = numberOf(query, 'gracePeriodSeconds')
  return {
    ...text('propagationPolicy'),
    ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    ...(query.has('orphanDependents') ? { orphanDependents: flagOf(query, 'orphanDependents') } : {}),
    dryRun: query.getAll('dryRun'),
    preconditions: { ...text('uid'), ...text('resourceVersion') },
  }
}

const TYPES: Readonly<Record<string, { readonly is: (value: Json) => boolean; readonly goType: string }>> = {
  gracePeriodSeconds: { is: (value) => Number.isInteger(value), goType: 'int64' },
  preconditions: { is: isObject, goType: 'v1.Preconditions' },
  orphanDependents: { is: (value) => typeof value === 'boolean', goType: 'bool' },
  propagationPolicy: { is: (value) => typeof value === 'string', goType: 'v1.DeletionPropagation' },
  dryRun: { is: Array.isArray, goType: '[]string' },
}

/** 500 and no reason: the real server does not expect it here. */
function checkTypes(body: Json): void {
  const refuse = (message: string) => new StatusError({ code: 500, reason: '', message })
  if (body === null) return
  if (!isObject(body)) throw refuse(`couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonType(body)} into Go value`)
  const kind = textAt(body, 'kind')
  if (kind !== '' && kind !== 'DeleteOptions')
    throw refuse(`no kind "${kind}" is registered for version "${textAt(body, 'apiVersion')}" in scheme "pkg/runtime/scheme.go:110"`)
  for (const [name, { is, goType }] of Object.entries(TYPES)) {
    const value = body[name] ?? null
    if (value !== null && !is(value))
      throw refuse(`json: cannot unmarshal ${jsonType(value)} into Go struct field DeleteOptions.${name} of type ${goType}`)
  }
}

function jsonType(value: Json): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'number' : `number ${value}`
  return typeof value === 'boolean' ? 'bool' : typeof value
}
