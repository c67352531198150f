import type { Static } from 'typebox'
import { obj, opt, str } from '../schema/nodes.ts'
import { type ProblemList, unify } from '../schema/normalize.ts'
import { configMapKeySelector } from './references.ts'

export const DEFAULT_CA_BUNDLE_KEY = 'ca.crt'

/** Certificates of the authorities to trust besides those of the system. They are public, so they live in a ConfigMap. */
export const caBundleRef = (description = 'Certificates to trust besides those of the system.') =>
  obj(
    description,
    {
      configMapRef: opt(configMapKeySelector('The ConfigMap and the key (ca.crt if not given) with the certificates in PEM form.')),
      name: opt(str('Another spelling of configMapRef.name.', { minLength: 1, maxLength: 253 })),
      key: opt(str('Another spelling of configMapRef.key.', { minLength: 1, maxLength: 253 })),
    },
    {
      rules: [
        {
          rule: 'has(self.configMapRef) || has(self.name)',
          message: 'configMapRef must be set: {configMapRef: {name: NAME, key: KEY}}',
        },
        {
          rule: `!has(self.configMapRef) || ((!has(self.name) || self.name == self.configMapRef.name) && (!has(self.key) || self.key == (has(self.configMapRef.key) ? self.configMapRef.key : '${DEFAULT_CA_BUNDLE_KEY}')))`,
          message: 'name and key are other spellings of configMapRef.name and configMapRef.key and must not differ: set configMapRef only',
        },
      ],
    },
  )

export type CABundleRef = Static<ReturnType<typeof caBundleRef>>

export interface CanonicalCABundleRef {
  configMapRef: { name: string; key: string; optional: boolean }
}

/** A bundle without a name is a problem and counts as absent. */
export function normaliseCaBundleRef(
  problems: ProblemList,
  field: string,
  value: CABundleRef | undefined,
): CanonicalCABundleRef | undefined {
  if (!value) return undefined
  const { configMapRef } = value
  const name = unify(problems, { [`${field}.configMapRef.name`]: configMapRef?.name, [`${field}.name`]: value.name })
  const key = unify(problems, {
    [`${field}.configMapRef.key`]: configMapRef && (configMapRef.key ?? DEFAULT_CA_BUNDLE_KEY),
    [`${field}.key`]: value.key,
  })
  if (!name) {
    problems.add(field, 'missing', `${field}.configMapRef.name must be set`)
    return undefined
  }
  return { configMapRef: { name, key: key ?? DEFAULT_CA_BUNDLE_KEY, optional: configMapRef?.optional ?? false } }
}
