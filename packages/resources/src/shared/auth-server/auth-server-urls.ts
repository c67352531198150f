/*
 * Plain HTTP shows tokens and secrets to the network. Loopback is the exception that RFC 8252 makes, and a flag named
 * `insecureAllowHTTP` the one that people can make.
 */

/** For `pattern`: an issuer, so without query, fragment and trailing slash. */
export const ISSUER_PATTERN = '^https?://[^\\s?#]+[^/\\s?#]$'
export const HTTPS_ISSUER_PATTERN = '^https://[^\\s?#]+[^/\\s?#]$'
export const URL_PATTERN = '^https?://[^\\s]+$'
export const HTTPS_URL_PATTERN = '^https://[^\\s]+$'
export const MAX_URL = 2048

/** The port is spelled out so that `localhost:x@elsewhere` is not taken for localhost. */
const LOOPBACK = '(localhost|127[.][0-9.]+|\\\\[::1\\\\])(:[0-9]+)?(/|$)'

/** CEL: the URL is safe as it is. */
export const httpsOrLoopback = (url: string) => `(${url}.startsWith('https://') || ${url}.matches('^http://${LOOPBACK}'))`

/** CEL: the URL leads back to the machine of the browser. */
export const isLoopback = (url: string) => `${url}.matches('^https?://${LOOPBACK}')`

/** CEL: an optional flag is set to true. */
export const isTrue = (field: string) => `(has(${field}) && ${field})`
