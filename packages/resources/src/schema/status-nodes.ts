import { int64, list, obj, oneOf, opt, str } from './nodes.ts'

/** The standard condition list, keyed by type. */
export const conditions = (description = 'Conditions of the object, one per type.') =>
  list(
    description,
    obj('One condition.', {
      type: str('Type of the condition.', {
        maxLength: 316,
        pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
      }),
      status: oneOf('Status of the condition.', ['True', 'False', 'Unknown']),
      reason: str('Machine-readable reason of the last transition.', {
        minLength: 1,
        maxLength: 1024,
        pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
      }),
      message: str('Explanation for people, with what to do next.', { maxLength: 32768 }),
      lastTransitionTime: str('When the status last changed.', { format: 'date-time' }),
      observedGeneration: opt(int64('Generation of the object that the condition was computed from.', { minimum: 0 })),
    }),
    { merge: ['type'] },
  )

export const observedGeneration = () => int64('Generation of the spec that this status was computed from.', { minimum: 0 })
