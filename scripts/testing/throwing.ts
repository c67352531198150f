/* Bundled by a test: throws from a known line. */

export interface Padding {
  readonly lines: 'that the bundle does not have'
}

function thrower(): never {
  throw new TypeError('on line 8')
}

try {
  thrower()
} catch (error) {
  console.log((error as Error).stack)
}
