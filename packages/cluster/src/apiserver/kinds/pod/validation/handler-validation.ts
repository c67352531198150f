import { forbidden, invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { headerNameProblems, portNameProblems, portNumberProblems } from '@thv/kube-schema/values/name-checks'
import { at, textAt } from '../../../objects/served-kind.ts'
import { numberAt, objectAt, objectsAt, textsAt } from './fields.ts'
import { invalidAll, nonNegative, oneOf } from './problems.ts'

const PROBE_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc']
const LIFECYCLE_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'sleep']

/** The probes and hooks of a container that runs for long. */
export function lifeProblems(container: JsonObject, path: string, graceSeconds: number): FieldProblem[] {
  const hooks = ['postStart', 'preStop'].flatMap((name) => {
    const hook = objectAt(container, 'lifecycle', name)
    return hook ? handlerProblems(hook, `${path}.lifecycle.${name}`, { names: LIFECYCLE_HANDLERS, graceSeconds }) : []
  })
  const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'].flatMap((name) => {
    const probe = objectAt(container, name)
    return probe ? probeProblems(probe, `${path}.${name}`, { readiness: name === 'readinessProbe', graceSeconds }) : []
  })
  return [...hooks, ...probes]
}

function probeProblems(probe: JsonObject, path: string, { readiness, graceSeconds }: { readiness: boolean; graceSeconds: number }) {
  const problems = handlerProblems(probe, path, { names: PROBE_HANDLERS, graceSeconds })
  for (const name of ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'])
    problems.push(...nonNegative(`${path}.${name}`, numberAt(probe, name)))
  const grace = numberAt(probe, 'terminationGracePeriodSeconds')
  if (grace !== undefined && grace <= 0) problems.push(invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than 0'))
  const successes = numberAt(probe, 'successThreshold') ?? 0
  if (readiness) {
    if (grace !== undefined) problems.push(invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must not be set for readinessProbes'))
  } else if (successes !== 1) problems.push(invalid(`${path}.successThreshold`, successes, 'must be 1'))
  return problems
}

interface HandlerOptions {
  readonly names: readonly string[]
  readonly graceSeconds: number
}

/** Exactly one kind of handler; the first that is there is the one that counts. */
function handlerProblems(handler: JsonObject, path: string, { names, graceSeconds }: HandlerOptions): FieldProblem[] {
  const [first, ...others] = names.filter((name) => objectAt(handler, name) !== undefined)
  if (first === undefined) return [required(path, 'must specify a handler type')]
  return [
    ...actionProblems(first, objectAt(handler, first) ?? {}, { path: `${path}.${first}`, graceSeconds }),
    ...others.map((name) => forbidden(`${path}.${name}`, 'may not specify more than 1 handler type')),
  ]
}

function actionProblems(kind: string, action: JsonObject, { path, graceSeconds }: { path: string; graceSeconds: number }): FieldProblem[] {
  switch (kind) {
    case 'exec':
      return textsAt(action, 'command').length === 0 ? [required(`${path}.command`)] : []
    case 'httpGet':
      return [
        ...portProblems(at(action, 'port'), `${path}.port`),
        ...oneOf(`${path}.scheme`, textAt(action, 'scheme'), ['HTTP', 'HTTPS']),
        ...objectsAt(action, 'httpHeaders').flatMap((header) => {
          const name = textAt(header, 'name')
          return invalidAll(`${path}.httpHeaders`, name, headerNameProblems(name))
        }),
      ]
    case 'sleep': {
      const seconds = numberAt(action, 'seconds') ?? 0
      if (seconds >= 0 && seconds <= graceSeconds) return []
      return [invalid(path, seconds, `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`)]
    }
    default:
      return portProblems(at(action, 'port'), `${path}.port`)
  }
}

/** A number or the name of a port of the container. */
function portProblems(port: Json | undefined, field: string): FieldProblem[] {
  if (typeof port === 'string') return invalidAll(field, port, portNameProblems(port))
  const number = typeof port === 'number' ? port : 0
  return invalidAll(field, number, portNumberProblems(number))
}
