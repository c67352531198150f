import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import { httpError, isHttpError, RequestError } from './http-errors.ts'

describe('error codes', () => {
  it('are codes of the one error class', () => {
    const error = httpError('backend_dns', 'no', { details: { host: 'x' } })
    expect(error).toBeInstanceOf(ThvError)
    expect(isHttpError(error, 'backend_dns')).toBe(true)
    expect(isHttpError(error, 'backend_tls')).toBe(false)
    expect(isHttpError(new Error('backend_dns'), 'backend_dns')).toBe(false)
    expect(new RequestError('request_body_too_large', 413, 'x')).toMatchObject({ code: 'request_body_too_large', status: 413 })
  })
})
