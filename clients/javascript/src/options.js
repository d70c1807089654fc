// The options of the functions that make filters and counters.

import { tagOf, typeNamed } from "./elements.js";

/** What constructors ask for, so that only this package calls them. */
export const internal = Symbol("internal");

/** A number, an array or a Map is an error. It has no options, and would be ignored. */
export function checkOptions(options, names) {
    if (tagOf(options) !== "Object" || Object.keys(options).some((name) => !names.includes(name))) {
        throw new TypeError(`the options are an object with any of: ${names.join(", ")}`);
    }
}

/** The element type that the options name, or null. It must be the one that the bytes have, if they have one. */
export function declaredType(noun, held, options) {
    checkOptions(options, ["type"]);
    const declared = options.type === undefined ? null : typeNamed(options.type);
    if (held && declared && held !== declared) {
        throw new TypeError(`the ${noun} holds elements of type ${held.name}, not ${declared.name}`);
    }
    return declared;
}
