import type { KindSchema } from '@thv/kube-schema/kind-schema'
import { OBJECT_META_MERGE } from '@thv/kube-schema/meta/object-meta-merge'

/** Takes everything as it is; its lists are replaced as a whole. */
export const anySchema: KindSchema = {
  prune: (object) => ({ object, unknown: [] }),
  applyDefaults: (object) => object,
  validate: () => [],
  merge: {
    type: 'map',
    atomic: false,
    isField: () => true,
    strategy: { merge: false, retainKeys: false },
    member: (name) => {
      if (name === 'metadata') return OBJECT_META_MERGE
      return name === 'kind' || name === 'apiVersion' ? { type: 'scalar' } : { type: 'untyped' }
    },
  },
}
