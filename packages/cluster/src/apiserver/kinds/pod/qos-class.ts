import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { quantityOf } from '@thv/kube-schema/values/quantity'
import { at } from '../../objects/served-kind.ts'
import { objectAt, objectsAt } from './validation/fields.ts'

const COUNTED = ['cpu', 'memory']

/** How well a pod is treated when its node runs short. */
export function qosClassOf(spec: JsonObject): 'BestEffort' | 'Burstable' | 'Guaranteed' {
  const own = objectAt(spec, 'resources')
  const parts = own
    ? [own]
    : [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')].map((one) => objectAt(one, 'resources'))
  const amount = (kind: string, name: string) => parts.reduce((sum, part) => sum + quantityOf(at(part, kind, name)).nanos, 0n)
  const asked = (kind: string) => COUNTED.filter((name) => amount(kind, name) > 0n)
  if (asked('requests').length === 0 && asked('limits').length === 0) return 'BestEffort'
  const limited = parts.every((part) => COUNTED.every((name) => quantityOf(at(part, 'limits', name)).nanos > 0n))
  const equal = asked('requests').length === asked('limits').length
  return limited && equal && asked('requests').every((name) => amount('requests', name) === amount('limits', name))
    ? 'Guaranteed'
    : 'Burstable'
}
