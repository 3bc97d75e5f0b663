//! Dates for templates, in UTC, with the C locale's names.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SECONDS_PER_DAY: i64 = 86_400;

struct Moment {
    year: i64,
    month: usize,       // 1 to 12
    day: i64,           // 1 to 31
    day_of_year: i64,   // 1 to 366
    day_of_week: usize, // 0 is Sunday
    hour: i64,
    minute: i64,
    second: i64,
    unix_seconds: i64,
}

impl Moment {
    fn new(unix_seconds: i64) -> Self {
        let days = unix_seconds.div_euclid(SECONDS_PER_DAY); // since 1970-01-01, a Thursday
        let second_of_day = unix_seconds.rem_euclid(SECONDS_PER_DAY);
        let mut year = 1970 + days.div_euclid(366).min(days.div_euclid(365)); // never too late
        while days >= days_before(year + 1) {
            year += 1;
        }
        let day_of_year = days - days_before(year);
        let (mut month, mut day) = (1, day_of_year);
        while day >= month_length(year, month) {
            day -= month_length(year, month);
            month += 1;
        }
        Self {
            year,
            month,
            day: day + 1,
            day_of_year: day_of_year + 1,
            day_of_week: (days + 4).rem_euclid(7) as usize,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            unix_seconds,
        }
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from 1970-01-01 to the first of January of `year`.
fn days_before(year: i64) -> i64 {
    let past = year - 1;
    let leap_days = past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400);
    365 * (year - 1970) + leap_days - 477
}

fn month_length(year: i64, month: usize) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `format` filled in as C's strftime does; a directive that is not known stays as it is.
pub fn strftime(format: &str, unix_seconds: i64) -> String {
    // Years of at most four digits, as any clock shows.
    let moment = Moment::new(unix_seconds.clamp(-62_135_596_800, 253_402_300_799));
    let mut out = String::with_capacity(format.len() + 16);
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut ahead = rest.clone();
        let first = ahead.next();
        let unpadded = first == Some('-');
        let directive = if unpadded { ahead.next() } else { first };
        match directive.and_then(|directive| expand(&moment, directive)) {
            Some(text) => {
                let stripped = text.trim_start_matches(['0', ' ']);
                let bare = if stripped.is_empty() { "0" } else { stripped };
                out.push_str(if unpadded { bare } else { &text });
                rest = ahead;
            }
            None => out.push('%'),
        }
    }
    out
}

fn expand(moment: &Moment, directive: char) -> Option<String> {
    let hour12 = (moment.hour + 11) % 12 + 1;
    let Moment { year, month, day, hour, minute, second, .. } = *moment;
    Some(match directive {
        'a' => DAYS[moment.day_of_week][..3].to_string(),
        'A' => DAYS[moment.day_of_week].to_string(),
        'b' | 'h' => MONTHS[month - 1][..3].to_string(),
        'B' => MONTHS[month - 1].to_string(),
        'c' => strftime("%a %b %e %H:%M:%S %Y", moment.unix_seconds),
        'd' => format!("{day:02}"),
        'D' | 'x' => format!("{month:02}/{day:02}/{:02}", year % 100),
        'e' => format!("{day:2}"),
        'F' => format!("{year}-{month:02}-{day:02}"),
        'H' => format!("{hour:02}"),
        'I' => format!("{hour12:02}"),
        'j' => format!("{:03}", moment.day_of_year),
        'm' => format!("{month:02}"),
        'M' => format!("{minute:02}"),
        'n' => "\n".to_string(),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_string(),
        'R' => format!("{hour:02}:{minute:02}"),
        's' => moment.unix_seconds.to_string(),
        'S' => format!("{second:02}"),
        't' => "\t".to_string(),
        'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}"),
        'u' => ((moment.day_of_week + 6) % 7 + 1).to_string(),
        'w' => moment.day_of_week.to_string(),
        'y' => format!("{:02}", year % 100),
        'Y' => year.to_string(),
        'z' => "+0000".to_string(),
        'Z' => "UTC".to_string(),
        '%' => "%".to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn dates() {
        assert_eq!(strftime("%d %b %Y", 1_768_435_200), "15 Jan 2026");
        assert_eq!(strftime("%A %-d %B %Y %j %H:%M:%S", 951_782_399), "Monday 28 February 2000 059 23:59:59");
        assert_eq!(strftime("%F %a %q 100%", -1), "1969-12-31 Wed %q 100%");
        assert_eq!(strftime("%F %I%p", 1_709_208_000), "2024-02-29 12PM");
    }
}
