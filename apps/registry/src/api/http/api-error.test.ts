import { ThvError } from '@thv/kernel/errors'
import { expect, it } from 'vitest'
import { apiErrorOf } from './api-error.ts'

it.each(['store_unavailable', 'timeout'] as const)('%s is temporary, so clients receive Retry-After, and nothing else', (code) => {
  const error = apiErrorOf(new ThvError(code, 'db.internal:5432 is silent'))
  expect(error).toMatchObject({ status: 503, message: 'the database does not answer', options: { headers: ['Retry-After', '1'] } })
})

it('an unexpected error has no answer of its own', () => {
  expect(apiErrorOf(new TypeError('x'))).toBeUndefined()
  expect(apiErrorOf(new ThvError('internal_error', 'x'))).toBeUndefined()
})
