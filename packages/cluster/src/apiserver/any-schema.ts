import { OBJECT_META_MERGE } from '../schema/object-meta-merge.ts'
import type { KindSchema } from './kind-schema.ts'

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
