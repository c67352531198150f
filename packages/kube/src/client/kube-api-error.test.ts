import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import * as errors from './kube-api-error.ts'

const make = (status: number, reason?: string) =>
  new errors.KubeApiError({
    call: { verb: 'get', target: 'pods a/b' },
    status,
    body: reason === undefined ? undefined : { reason, message: 'said so' },
  })

const checks = {
  isNotFound: errors.isNotFound,
  isConflict: errors.isConflict,
  isAlreadyExists: errors.isAlreadyExists,
  isForbidden: errors.isForbidden,
  isInvalid: errors.isInvalid,
  isTooManyRequests: errors.isTooManyRequests,
  isGone: errors.isGone,
  isExpired: errors.isExpired,
}

describe('KubeApiError', () => {
  it.each<[unknown, (keyof typeof checks)[]]>([
    [make(404, 'NotFound'), ['isNotFound']],
    [make(404), ['isNotFound']],
    [make(409, 'Conflict'), ['isConflict']],
    [make(409, 'AlreadyExists'), ['isAlreadyExists']],
    [make(403, 'Forbidden'), ['isForbidden']],
    [make(422, 'Invalid'), ['isInvalid']],
    [make(429, 'TooManyRequests'), ['isTooManyRequests']],
    [make(410, 'Expired'), ['isGone', 'isExpired']],
    [errors.expiredError(make(410, 'Expired')), ['isExpired']],
    [make(500, 'InternalError'), []],
    [new ThvError('kube_unreachable', 'x'), []],
    [new Error('404'), []],
    [{ status: 404 }, []],
    [undefined, []],
  ])('%s', (error, expected) => {
    const holding = Object.entries(checks).filter(([, check]) => check(error))
    expect(holding.map(([name]) => name)).toEqual(expected)
  })

  it('says what was asked and answered', () => {
    expect(make(404, 'NotFound').message).toBe('get pods a/b: said so (404 NotFound)')
    expect(make(500).message).toBe('get pods a/b: no message (500)')
  })
})
