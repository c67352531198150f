import { expect, it } from 'vitest'
import { storeMessage } from './store-error.ts'

it('names the setting of a missing password', () => {
  const error = new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a non-empty string')
  expect(storeMessage(error)).toContain('the database wants a password')
  expect(storeMessage(new Error('connect ECONNREFUSED'))).toContain('PostgreSQL does not answer')
})
