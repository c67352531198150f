import { invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { configKeyProblems, envNameProblems, subdomainProblems } from '@thv/kube-schema/values/name-checks'
import { textAt } from '../../../objects/served-kind.ts'
import { ENV_FIELDS, fieldRefProblems, resourceRefProblems } from './downward-validation.ts'
import { objectAt, objectsAt } from './fields.ts'
import { invalidAll } from './problems.ts'

/** Of `env` and `envFrom` of a container. */
export function envProblems(container: JsonObject, path: string): FieldProblem[] {
  return [
    ...objectsAt(container, 'env').flatMap((variable, index) => variableProblems(variable, `${path}.env[${index}]`)),
    ...objectsAt(container, 'envFrom').flatMap((source, index) => envFromProblems(source, `${path}.envFrom`, index)),
  ]
}

function variableProblems(variable: JsonObject, path: string): FieldProblem[] {
  const name = textAt(variable, 'name')
  const source = objectAt(variable, 'valueFrom')
  return [
    ...(name === '' ? [required(`${path}.name`)] : invalidAll(`${path}.name`, name, envNameProblems(name))),
    ...(source === undefined ? [] : sourceProblems(source, `${path}.valueFrom`, textAt(variable, 'value') !== '')),
  ]
}

function sourceProblems(source: JsonObject, path: string, hasValue: boolean): FieldProblem[] {
  const checks: [string, (ref: JsonObject, path: string) => FieldProblem[]][] = [
    ['fieldRef', (ref, below) => fieldRefProblems(ref, below, ENV_FIELDS)],
    ['resourceFieldRef', (ref, below) => resourceRefProblems(ref, below, false)],
    ['configMapKeyRef', keyRefProblems],
    ['secretKeyRef', keyRefProblems],
  ]
  let sources = 0
  const problems = checks.flatMap(([name, check]) => {
    const ref = objectAt(source, name)
    if (ref === undefined) return []
    sources++
    return check(ref, `${path}.${name}`)
  })
  if (sources === 0)
    problems.push(invalid(path, '', 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'))
  else if (hasValue) problems.push(invalid(path, '', 'may not be specified when `value` is not empty'))
  else if (sources > 1) problems.push(invalid(path, '', 'may not have more than one field specified at a time'))
  return problems
}

function keyRefProblems(ref: JsonObject, path: string): FieldProblem[] {
  const name = textAt(ref, 'name')
  const key = textAt(ref, 'key')
  return [
    ...invalidAll(`${path}.name`, name, subdomainProblems(name)),
    ...(key === '' ? [required(`${path}.key`)] : invalidAll(`${path}.key`, key, configKeyProblems(key))),
  ]
}

function envFromProblems(source: JsonObject, list: string, index: number): FieldProblem[] {
  const path = `${list}[${index}]`
  const prefix = textAt(source, 'prefix')
  const refs = ['configMapRef', 'secretRef'].filter((name) => objectAt(source, name) !== undefined)
  const problems = prefix === '' ? [] : invalidAll(`${path}.prefix`, prefix, envNameProblems(prefix))
  for (const ref of refs) {
    const name = textAt(source, ref, 'name')
    const field = `${path}.${ref}.name`
    if (name === '') problems.push(required(field))
    // As a prefix: more may follow, so a dash at the end is good.
    else problems.push(...invalidAll(field, name, subdomainProblems(name.endsWith('-') ? `${name}a` : name)))
  }
  if (refs.length === 0) problems.push(invalid(list, '', 'must specify one of: `configMapRef` or `secretRef`'))
  else if (refs.length > 1) problems.push(invalid(list, '', 'may not have more than one field specified at a time'))
  return problems
}
