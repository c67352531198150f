/* Bundled by a test: throws from a known line. */

export interface Padding {
  readonly lines: 'that the bundle does not have'
}

function thrower(): never {
  throw new TypeError('on line 8', { cause: new AggregateError([new RangeError('inside')], 'cause') })
}

thrower()
