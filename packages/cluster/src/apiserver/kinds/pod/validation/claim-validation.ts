import { forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { subdomainProblems } from '@thv/kube-schema/values/name-checks'
import { quantityOf, quantityText } from '@thv/kube-schema/values/quantity'
import { labelSelectorProblems } from '../../../objects/field-checks.ts'
import { at, textAt } from '../../../objects/served-kind.ts'
import { givenText, objectAt, textsAt } from './fields.ts'
import { invalidAll, oneOf } from './problems.ts'

const MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** Of the spec of a PersistentVolumeClaim, as templates have it. Data sources are not looked into. */
export function claimSpecProblems(spec: JsonObject, path: string): FieldProblem[] {
  const modes = textsAt(spec, 'accessModes')
  const field = `${path}.accessModes`
  const problems: FieldProblem[] = modes.length === 0 ? [required(field, 'at least 1 access mode is required')] : []
  problems.push(...labelSelectorProblems(`${path}.selector`, objectAt(spec, 'selector')))
  problems.push(...modes.filter((mode) => !MODES.includes(mode)).map((mode) => notSupported(field, mode, MODES)))
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod' && MODES.includes(mode)))
    problems.push(forbidden(field, 'may not use ReadWriteOncePod with other access modes'))
  problems.push(...storageProblems(spec, `${path}.resources[storage]`))
  const name = textAt(spec, 'storageClassName')
  if (name !== '') problems.push(...invalidAll(`${path}.storageClassName`, name, subdomainProblems(name)))
  return [...problems, ...oneOf(`${path}.volumeMode`, givenText(spec, 'volumeMode'), ['Block', 'Filesystem'])]
}

function storageProblems(spec: JsonObject, field: string): FieldProblem[] {
  const storage = at(spec, 'resources', 'requests', 'storage')
  if (storage === undefined) return [required(field)]
  const quantity = quantityOf(storage)
  return quantity.nanos > 0n ? [] : [invalid(field, quantityText(quantity), 'must be greater than zero')]
}
