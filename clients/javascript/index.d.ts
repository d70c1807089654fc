/** The type of the elements of a filter: how it reads values. */
export type ElementType =
    | "bigint"
    | "double precision"
    | "numeric"
    | "text"
    | "char(n)"
    | "bytea"
    | "uuid"
    | "boolean"
    | "date"
    | "time"
    | "timetz"
    | "timestamp"
    | "timestamptz"
    | "interval"
    | "inet"
    | "macaddr"
    | "macaddr8";

/** An interval by its parts, as node-postgres gives it. Parts that are absent are 0. */
export interface Interval {
    years?: number;
    months?: number;
    days?: number;
    hours?: number;
    minutes?: number;
    seconds?: number;
    milliseconds?: number;
    microseconds?: number;
}

/** A value of one of the element types. null and undefined are not elements. */
export type Element = number | bigint | string | boolean | Uint8Array | ArrayBuffer | Date | Interval;

export interface FilterOptions {
    /** 1e-9 to 0.5; default 0.01. */
    falsePositiveRate?: number;
    /** Default "blocked". */
    layout?: "blocked" | "classic";
    /** Any number of 64 bits; default 0. Only filters of one seed combine. */
    seed?: bigint | number;
    /** The type of the elements. Default: the type of the first element, if that follows from its JavaScript type. */
    type?: ElementType;
}

export interface BuildOptions extends FilterOptions {
    /** The number of distinct elements, at least 1. Default: the filter sizes itself, in the blocked layout. */
    expectedItems?: number;
}

/** Uint8Array<ArrayBuffer>, which Blob and fetch() take; Uint8Array before TypeScript 5.7. */
export type Bytes = ReturnType<Uint8Array["slice"]>;

export interface ReadOptions {
    /** The type of the elements. It reads values while there are none, and is an error if the elements have another. */
    type?: ElementType;
}

/** Bytes or text that are not a value of the type that is read. The message says why. */
export class FormatError extends Error {}

/** A value of the PostgreSQL type bloomfilter. */
export class BloomFilter {
    private constructor();

    /**
     * Reads a filter: its bytes, or the text that the server prints. Keeps a copy.
     * @throws {FormatError} if the server would refuse it, too
     */
    static from(source: Uint8Array | ArrayBuffer | string, options?: ReadOptions): BloomFilter;

    /** An empty filter, as bloom_create() makes it. */
    static create(expectedItems: number, options?: FilterOptions): BloomFilter;

    /** A filter of elements, with the bytes of bloom_agg(). Of no elements it is an empty filter with these options. */
    static build(elements: Iterable<Element>, options?: BuildOptions): BloomFilter;

    readonly layout: "blocked" | "classic";
    /** The size in bits; 0 in the empty filter without a size. */
    readonly bits: number;
    readonly hashFunctions: number;
    /** The false-positive rate that was asked for, in single precision. */
    readonly requestedRate: number;
    readonly seed: bigint;
    /** The type of the elements; null while nothing has been added and no type was given. */
    readonly type: ElementType | null;
    /** True while the filter stores hashes, and answers exactly. */
    readonly sparse: boolean;
    /** The length of toBytes(). */
    readonly byteLength: number;

    /**
     * False if the value was never added. True if it was, and at the false-positive rate if it was not.
     * @throws {TypeError} if the value is not of the element type, or no type follows from it while there is none
     * @throws {RangeError} if it is out of the range of the element type
     */
    has(value: Element): boolean;

    /** Adds an element, and returns the filter. Throws what has() throws. */
    add(value: Element): this;
    addAll(values: Iterable<Element>): this;

    /** A new filter of the elements of both, which must have equal parameters, size and type. */
    union(other: BloomFilter): BloomFilter;
    /** A new filter that contains what both contain. They must have equal parameters, size and type. */
    intersection(other: BloomFilter): BloomFilter;
    /** A new filter of the size and requested rate of another, so that both combine; as bloom_fold(filter, like). */
    foldTo(like: BloomFilter): BloomFilter;
    copy(): BloomFilter;

    /** The estimated number of distinct elements; Infinity if all bits are set. */
    cardinality(): number;
    /** Estimates of two filters that combine. The sizes of blocked filters may differ if one divides the other. */
    unionCardinality(other: BloomFilter): number;
    intersectionCardinality(other: BloomFilter): number;
    jaccard(other: BloomFilter): number;
    /** The false-positive rate that the filter has now. */
    falsePositiveRate(): number;

    /** True if both have the same bytes. */
    equals(other: BloomFilter): boolean;
    /** The bytes, as bloomfilter::bytea and COPY BINARY give them. */
    toBytes(): Bytes;
    /**
     * The text form: \x and hexadecimal digits.
     * @throws if the engine has no string of this length. In V8 a string has at most 2^29 - 24 characters.
     */
    toString(): string;
    /** The text form. */
    toJSON(): string;

    /** The numbers of the bits that a value has in a dense filter of these parameters. Some may be equal. */
    positions(value: Element): number[];
    /** True if a bit of a dense filter is set. Throws a TypeError if the filter is sparse. */
    bit(position: number): boolean;
}

/** A value of the PostgreSQL type bloomcounter, which is read and not changed. */
export class BloomCounter {
    private constructor();

    /**
     * Reads a counter: its bytes, or the text that the server prints. Keeps a copy.
     * @throws {FormatError} if the server would refuse it, too
     */
    static from(source: Uint8Array | ArrayBuffer | string, options?: ReadOptions): BloomCounter;

    readonly layout: "blocked" | "classic";
    /** The size in positions, each with a number; 0 in the empty counter without a size. */
    readonly positions: number;
    /** The width of a number in bits. */
    readonly counterBits: 4 | 8 | 16;
    /** The greatest number, which means "that or more". */
    readonly limit: number;
    /** True if the numbers are levels, false if they are counts. */
    readonly levels: boolean;
    readonly hashFunctions: number;
    /** The false-positive rate that was asked for, in single precision. */
    readonly requestedRate: number;
    readonly seed: bigint;
    /** The type of the elements; null while nothing has been added and no type was given. */
    readonly type: ElementType | null;
    /** True while the counter stores a hash and a number of each element, and answers exactly. */
    readonly sparse: boolean;
    /** The length of toBytes(). */
    readonly byteLength: number;

    /**
     * The number of a value, as bloom_count(): never below the true one, up to the limit, and above it at the
     * false-positive rate. Throws what BloomFilter.has() throws.
     */
    count(value: Element): number;
    /** True if count() is at least 1. */
    has(value: Element): boolean;

    /** The filter of what reads a level or more, as bloom_at_least(). Default 1: all elements, as by the cast. */
    toFilter(level?: number): BloomFilter;

    /** The estimated number of distinct elements; Infinity if all numbers are at least 1. */
    cardinality(): number;
    /** The estimated number of elements with repetitions. Throws a TypeError for a counter of levels. */
    total(): number;
    /** The false-positive rate that the counter has now. */
    falsePositiveRate(): number;

    /** True if both have the same bytes. */
    equals(other: BloomCounter): boolean;
    /** The bytes, as bloomcounter::bytea and COPY BINARY give them. */
    toBytes(): Bytes;
    /**
     * The text form: \x and hexadecimal digits.
     * @throws if the engine has no string of this length. In V8 a string has at most 2^29 - 24 characters.
     */
    toString(): string;
    /** The text form. */
    toJSON(): string;
}
