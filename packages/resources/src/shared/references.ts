import type { CelRule } from '../schema/cel.ts'
import { bool, obj, opt, str } from '../schema/nodes.ts'

/** `{name}` of an object in the same namespace. */
export const nameRef = (description: string) =>
  obj(description, { name: str('Name of the object, in the same namespace.', { minLength: 1, maxLength: 253 }) })

/** `{name, key}` of a value in a Secret of the same namespace. */
export const secretKeyRef = (description: string) =>
  obj(description, {
    name: str('Name of the Secret.', { minLength: 1, maxLength: 253 }),
    key: str('Key inside the Secret.', { minLength: 1, maxLength: 253 }),
  })

/** `{name, key, optional}` of a value in a ConfigMap of the same namespace, as in core/v1. */
export const configMapKeySelector = (description: string, options: { rules?: readonly CelRule[] } = {}) =>
  obj(
    description,
    {
      name: str('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
      key: opt(str('Key inside the ConfigMap.', { minLength: 1, maxLength: 253 })),
      optional: opt(bool('Whether the ConfigMap or its key may be missing.')),
    },
    options,
  )
