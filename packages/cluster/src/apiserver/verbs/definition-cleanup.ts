import type { ApiEnv } from '../http/request-context.ts'
import { CRD_FINALIZER } from '../kinds/custom-resource-definition/crd-rules.ts'
import { finalizersOf } from '../objects/object-meta.ts'
import { CRD_TYPE, metaOf, type ServedKind, textAt } from '../objects/served-kind.ts'

/** After the last object of a deleted definition the definition goes too. */
export function finishDefinition({ store }: ApiEnv, kind: ServedKind): void {
  if (!kind.custom) return
  const crd = store.get(CRD_TYPE, kind.type)
  if (crd === undefined || textAt(crd.body, 'metadata', 'deletionTimestamp') === '') return
  const left = store.list({ type: kind.type, limit: 1 })
  if (left !== 'expired' && left.objects.length > 0) return
  const finalizers = finalizersOf(crd.body).filter((finalizer) => finalizer !== CRD_FINALIZER)
  const body = { ...crd.body, metadata: { ...metaOf(crd.body), finalizers } }
  if (finalizers.length === 0) store.delete(crd, body)
  else store.update(crd, body)
}
